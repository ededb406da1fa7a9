-- The ids that a search of a theme leaves out: less trusted than is asked for; null for none.
--
-- trust: null asks for everything, 'trusted' for what is not untrusted, 'strict' for what is not exposed either.
CREATE OR REPLACE FUNCTION hermes_excluded(source {text_row}, theme text, all_themes boolean, trust text) RETURNS bigint[]
    LANGUAGE plpgsql STABLE PARALLEL RESTRICTED SET search_path FROM CURRENT
    SET plan_cache_mode = force_generic_plan SET enable_seqscan = off
    AS $$
#variable_conflict use_variable
BEGIN
    IF trust IS NULL THEN
        RETURN NULL;
    END IF;
    RETURN (
        SELECT array_agg(r.id) FROM {table} AS r
        WHERE r.trust IN ('untrusted', 'exposed') AND (r.trust = 'untrusted' OR trust = 'strict')
          AND CASE WHEN all_themes THEN r.agent_identity = theme OR NOT hermes_is_private(r.agent_identity)
                   ELSE r.agent_identity = theme END);
END $$;
