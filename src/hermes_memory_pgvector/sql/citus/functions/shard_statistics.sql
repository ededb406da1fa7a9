-- On a worker: what ANALYZE knows of the lexemes in a shard's rows.
CREATE OR REPLACE FUNCTION hermes_shard_statistics(shard bigint) RETURNS TABLE (source text, lexeme text, fraction real)
    LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp
    AS $$
    SELECT read.source, known.lexeme, max(known.fraction)
    FROM (VALUES ('memory_entries'), ('conversations')) AS read (source)
    JOIN pg_stats AS s ON s.schemaname = {schema_name} AND s.attname = 'lexemes'
     AND format('%I.%I', s.schemaname, s.tablename) = {schema}.hermes_beside('_' || shard, read.source)
    CROSS JOIN LATERAL unnest(s.most_common_elems::text::text[], s.most_common_elem_freqs) AS known (lexeme, fraction)
    WHERE known.lexeme IS NOT NULL
    GROUP BY 1, 2
    $$;
