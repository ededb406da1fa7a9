-- Puts off the rows that want a vector and lie on these nodes, so that those of other nodes are claimed.
UPDATE pending_vectors AS pending SET due_at = now() + make_interval(secs => %(seconds)s::double precision)
FROM (SELECT DISTINCT agent_identity AS theme FROM pending_vectors WHERE due_at <= now()) AS asked
JOIN pg_dist_placement AS place
  ON place.shardid = get_shard_id_for_distribution_column('conversations'::regclass, asked.theme)
JOIN pg_dist_node AS node ON node.groupid = place.groupid AND node.noderole = 'primary'
WHERE node.nodename || ':' || node.nodeport = ANY (%(nodes)s::text[])
  AND pending.agent_identity = asked.theme AND pending.due_at <= now();
