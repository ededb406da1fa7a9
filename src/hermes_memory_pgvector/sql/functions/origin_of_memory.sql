-- What put a memory there; of memories from before that was noted, the host's own stamps tell as far as there are any.
CREATE OR REPLACE FUNCTION hermes_origin_of_memory(origin text, metadata jsonb) RETURNS text
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    AS $$
    SELECT coalesce(origin,
                    CASE WHEN metadata ? 'imported_from' THEN 'import' WHEN metadata ? 'write_origin' THEN 'memory_tool' END,
                    'unknown')
    $$;
