-- create --
-- builds an approximate index over the vectors of all shared themes, while agents write
CREATE INDEX CONCURRENTLY {name} ON {table} USING hnsw (embedding halfvec_cosine_ops) WHERE NOT hermes_is_private(agent_identity)


-- find --
-- the approximate indexes over all shared themes of a model's vector tables, whoever made them
SELECT own.relname::text AS name, tab.relname::text AS "table", i.indisvalid AND i.indisready AS is_valid,
       pg_relation_size(i.indexrelid) AS size_bytes
FROM pg_index AS i
JOIN pg_class AS own ON own.oid = i.indexrelid
JOIN pg_class AS tab ON tab.oid = i.indrelid
JOIN pg_am AS method ON method.oid = own.relam AND method.amname = 'hnsw'
WHERE i.indrelid IN (to_regclass(%s), to_regclass(%s))
  AND pg_get_expr(i.indpred, i.indrelid) LIKE '%%hermes_is_private%%'
ORDER BY tab.relname DESC, own.relname


-- raise_memory --
-- lets this session build an index in so much memory, unless it has more already
SELECT set_config('maintenance_work_mem', greatest(pg_size_bytes(%s), pg_size_bytes(current_setting('maintenance_work_mem'))) / 1024
                                          || 'kB', false)
