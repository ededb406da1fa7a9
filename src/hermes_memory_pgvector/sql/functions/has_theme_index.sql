-- Whether a vector table has an approximate index of this theme's own (`hermes-pgvector index create --theme`).
CREATE OR REPLACE FUNCTION hermes_has_theme_index(vectors regclass, theme text) RETURNS boolean
    LANGUAGE plpgsql STABLE STRICT PARALLEL SAFE SET search_path FROM CURRENT
    SET plan_cache_mode = force_generic_plan SET enable_seqscan = off
    AS $$
BEGIN
    RETURN EXISTS (SELECT FROM theme_indexes AS t
                   JOIN pg_catalog.pg_index AS i ON i.indexrelid = to_regclass(quote_ident(t.index_name))
                   WHERE t.agent_identity = theme AND i.indrelid = vectors AND i.indisvalid);
END $$;
