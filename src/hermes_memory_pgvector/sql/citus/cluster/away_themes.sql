-- Which of these themes lie on these nodes?
SELECT asked.theme FROM unnest(%(themes)s::text[]) AS asked (theme)
JOIN pg_dist_placement AS place
  ON place.shardid = get_shard_id_for_distribution_column('conversations'::regclass, asked.theme)
JOIN pg_dist_node AS node ON node.groupid = place.groupid AND node.noderole = 'primary'
WHERE node.nodename || ':' || node.nodeport = ANY (%(nodes)s::text[]);
