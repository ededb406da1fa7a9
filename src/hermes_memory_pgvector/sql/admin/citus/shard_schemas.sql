-- where functions of this schema's shards are, and the mark of what they are
SELECT n.nspname::text, coalesce(obj_description(n.oid, 'pg_namespace'), '')
FROM pg_catalog.pg_namespace AS n
WHERE n.nspname ~ '^hermes_shard_[0-9]+$' AND split_part(obj_description(n.oid, 'pg_namespace'), ' ', 2) = %s
