-- Rows that contain as many of these terms together as can be had, the first of them at least.
--
-- For a question of common words only, the rarest first.
CREATE OR REPLACE FUNCTION hermes_look_up_common(
    source {text_row}, theme text, all_themes boolean, narrow text[], since timestamptz, until timestamptz,
    queries tsquery[], wanted integer, excluded bigint[] DEFAULT NULL,
    OUT themes text[], OUT ids bigint[]
)
    LANGUAGE plpgsql STABLE PARALLEL RESTRICTED
    SET search_path = pg_catalog, pg_temp SET plan_cache_mode = force_generic_plan
    SET enable_seqscan = off SET enable_bitmapscan = on SET jit = off SET max_parallel_workers_per_gather = 0
    AS $$
DECLARE
    every tsquery;
    query tsquery;
BEGIN
    FOR number IN REVERSE least(cardinality(queries), 5) .. 1 LOOP
        every := {schema}.hermes_theme_query(theme, all_themes);
        FOREACH query IN ARRAY queries[1:number] LOOP
            every := every && query;
        END LOOP;
        SELECT array_agg(f.theme), array_agg(f.id) INTO themes, ids
        FROM (SELECT CASE WHEN all_themes THEN r.agent_identity END AS theme, r.id FROM {schema}.{table} AS r
              WHERE r.lexemes @@ every
                AND CASE WHEN all_themes THEN r.agent_identity = theme OR NOT {schema}.hermes_is_private(r.agent_identity)
                         ELSE r.agent_identity || '' = theme END
                AND (narrow IS NULL OR r.{place} = ANY (narrow))
                AND (since IS NULL OR r.{ts} >= since) AND (until IS NULL OR r.{ts} < until)
                AND (excluded IS NULL OR r.id NOT IN (SELECT unnest(excluded)))
              LIMIT wanted) AS f;
        EXIT WHEN cardinality(ids) > 0;
    END LOOP;
END $$;
