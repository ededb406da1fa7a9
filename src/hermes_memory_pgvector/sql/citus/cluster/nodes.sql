-- The nodes of the cluster, whether each answers, and how many shards it holds. Only where Citus is installed.
SELECT node.nodename || ':' || node.nodeport, node.groupid = 0, node.isactive,
       citus_check_connection_to_node(node.nodename, node.nodeport),
       (SELECT count(*) FROM pg_dist_placement AS place
        JOIN pg_dist_shard AS shard ON shard.shardid = place.shardid
        WHERE place.groupid = node.groupid AND shard.logicalrelid = to_regclass('conversations'))
FROM pg_dist_node AS node WHERE node.noderole = 'primary' ORDER BY node.groupid;
