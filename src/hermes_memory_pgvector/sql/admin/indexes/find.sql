-- the approximate indexes of a model's vector tables
SELECT own.relname::text AS name, tab.relname::text AS "table", i.indisvalid AND i.indisready AS is_valid,
       EXISTS (SELECT FROM pg_stat_progress_create_index AS p WHERE p.index_relid = i.indexrelid) AS is_building,
       pg_relation_size(i.indexrelid) AS size_bytes, pg_get_indexdef(i.indexrelid) AS definition
FROM pg_index AS i
JOIN pg_class AS own ON own.oid = i.indexrelid
JOIN pg_class AS tab ON tab.oid = i.indrelid
JOIN pg_am AS method ON method.oid = own.relam AND method.amname = 'hnsw'
WHERE i.indrelid IN (to_regclass(%(turns)s), to_regclass(%(memories)s))
ORDER BY tab.relname DESC, own.relname
