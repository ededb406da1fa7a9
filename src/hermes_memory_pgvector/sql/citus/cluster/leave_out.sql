-- Lets the searches of this transaction that ask every shard ask those alone that do not lie on these nodes.
SELECT set_config('hermes.shards', string_agg(known.key, ','), true)
FROM shard_keys AS known
WHERE NOT EXISTS (
    SELECT FROM pg_dist_placement AS place
    JOIN pg_dist_node AS node ON node.groupid = place.groupid AND node.noderole = 'primary'
    WHERE place.shardid = known.shard_id AND node.nodename || ':' || node.nodeport = ANY (%(nodes)s::text[]));
