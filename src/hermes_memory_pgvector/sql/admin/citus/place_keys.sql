-- finds for every shard a key that lies in it
INSERT INTO shard_keys (shard_id, key)
SELECT DISTINCT ON (shard_id) get_shard_id_for_distribution_column('conversations'::regclass, tried.key) AS shard_id, tried.key
FROM (SELECT 'shard anchor ' || n AS key, n FROM generate_series(1, %(tries)s::integer) AS n) AS tried
ORDER BY shard_id, tried.n
