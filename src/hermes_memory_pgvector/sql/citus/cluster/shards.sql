-- How many shards there are, and how many of them the functions were made for. Only where Citus is installed.
SELECT (SELECT count(*) FROM pg_dist_shard WHERE logicalrelid = to_regclass('conversations')),
       (SELECT count(*) FROM shard_keys AS known JOIN pg_dist_shard AS shard ON shard.shardid = known.shard_id);
