-- How many rows a search looks at, roughly: large themes are known from statistics, others are counted up to 2,000.
CREATE OR REPLACE FUNCTION hermes_count_rows(source {text_row}, theme text, all_themes boolean) RETURNS double precision
    LANGUAGE plpgsql STABLE PARALLEL RESTRICTED SET search_path FROM CURRENT
    SET plan_cache_mode = force_generic_plan SET enable_seqscan = off
    AS $$
DECLARE
    total double precision := (
        SELECT greatest(c.reltuples, 1) * CASE WHEN all_themes THEN 1
                   ELSE nullif((hermes_term_fractions({table_name}, ARRAY['~=' || theme]))[1], 0) END
        FROM pg_catalog.pg_class AS c WHERE c.oid = '{table}'::regclass);
BEGIN
    IF total IS NULL THEN
        SELECT count(*) INTO total FROM (SELECT FROM {table} AS r WHERE r.agent_identity = theme LIMIT 2000) AS counted;
    END IF;
    RETURN total;
END $$;
