-- Whether a vector table has the approximate index over all themes (`hermes-pgvector index create --all`).
CREATE OR REPLACE FUNCTION hermes_has_shared_index(vectors regclass) RETURNS boolean
    LANGUAGE sql STABLE STRICT PARALLEL SAFE
    AS $$
    SELECT EXISTS (SELECT FROM pg_catalog.pg_index AS i
                   JOIN pg_catalog.pg_class AS c ON c.oid = i.indexrelid
                   JOIN pg_catalog.pg_am AS m ON m.oid = c.relam
                   WHERE i.indrelid = vectors AND i.indisvalid AND m.amname = 'hnsw'
                     AND pg_get_expr(i.indpred, i.indrelid) LIKE '%hermes_is_private%')
    $$;
