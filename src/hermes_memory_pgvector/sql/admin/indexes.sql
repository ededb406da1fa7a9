-- code_bits --
-- how many bits a code has
SELECT atttypmod FROM pg_attribute WHERE attrelid = to_regclass(%s) AND attname = 'code'


-- create --
-- builds an approximate index over the codes of some rows while agents write; distances of codes are small whole
-- numbers, many of them equal, and with fewer edges a search loses its way among them
CREATE INDEX CONCURRENTLY {name} ON {table} USING hnsw (code bit_hamming_ops)
WITH (m = 24, ef_construction = 128) WHERE {rows}


-- find --
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


-- find_keys --
-- the indexes that every search reads, each with what interrupted rebuilds have left of it
SELECT key.relname::text, ARRAY(
    SELECT left_over.relname::text FROM pg_index AS l JOIN pg_class AS left_over ON left_over.oid = l.indexrelid
    WHERE l.indrelid = i.indrelid AND NOT l.indisvalid AND starts_with(left_over.relname, key.relname || '_cc'))
FROM pg_index AS i
JOIN pg_class AS key ON key.oid = i.indexrelid
JOIN pg_am AS method ON method.oid = key.relam AND method.amname = 'btree'
WHERE i.indisvalid AND i.indrelid IN (to_regclass(%(turns)s), to_regclass(%(memories)s))
ORDER BY i.indrelid = to_regclass(%(turns)s) DESC, key.relname


-- list_theme --
-- has searches of a theme use its index
INSERT INTO theme_indexes (agent_identity, model_id, index_name) VALUES (%(theme)s, %(model_id)s, %(name)s)
ON CONFLICT (agent_identity, model_id) DO UPDATE SET index_name = excluded.index_name


-- progress --
-- how far the index build of another connection has come
SELECT phase, CASE WHEN blocks_total > 0 THEN least(1.0, blocks_done / blocks_total::double precision) END AS share
FROM pg_stat_progress_create_index WHERE pid = %s


-- raise_memory --
-- lets this session build an index in so many kilobytes, unless it already has more
SELECT set_config('maintenance_work_mem', greatest(%s, pg_size_bytes(current_setting('maintenance_work_mem')) / 1024)
                                          || 'kB', false)


-- theme_count --
-- how many vectors a theme has
SELECT count(*) FROM {turn_vectors} WHERE agent_identity = %s


-- theme_counts --
-- how many vectors each theme has
SELECT agent_identity, count(*) FROM {turn_vectors} GROUP BY agent_identity


-- unlist_theme --
-- has searches of a theme do without its index
DELETE FROM theme_indexes WHERE agent_identity = %(theme)s AND model_id = %(model_id)s
