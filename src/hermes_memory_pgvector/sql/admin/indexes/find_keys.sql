-- the indexes that every search reads, each with what interrupted rebuilds have left of it
SELECT key.relname::text, ARRAY(
    SELECT left_over.relname::text FROM pg_index AS l JOIN pg_class AS left_over ON left_over.oid = l.indexrelid
    WHERE l.indrelid = i.indrelid AND NOT l.indisvalid AND starts_with(left_over.relname, key.relname || '_cc'))
FROM pg_index AS i
JOIN pg_class AS key ON key.oid = i.indexrelid
JOIN pg_am AS method ON method.oid = key.relam AND method.amname = 'btree'
WHERE i.indisvalid AND i.indrelid IN (to_regclass(%(turns)s), to_regclass(%(memories)s))
ORDER BY i.indrelid = to_regclass(%(turns)s) DESC, key.relname
