-- Rows that contain any of these terms, at most common_from + 1 of each and hit_limit in all; the theme is null for rows
-- of the theme itself.
--
-- The theme predicate is written so that only the index on lexemes can serve it: no statistics, cached plan or theme
-- size makes Postgres read a whole theme.
CREATE OR REPLACE FUNCTION hermes_look_up_terms(
    source {text_row}, theme text, all_themes boolean, narrow text[], since timestamptz, until timestamptz,
    queries tsquery[], terms integer[], common_from integer, hit_limit integer,
    excluded bigint[] DEFAULT NULL,
    OUT hits integer[], OUT themes text[], OUT ids bigint[]
)
    LANGUAGE plpgsql STABLE PARALLEL RESTRICTED
    SET search_path = pg_catalog, pg_temp SET plan_cache_mode = force_generic_plan
    SET enable_seqscan = off SET enable_bitmapscan = on SET jit = off SET max_parallel_workers_per_gather = 0
    AS $$
DECLARE
    inside CONSTANT tsquery := {schema}.hermes_theme_query(theme, all_themes);
BEGIN
    SELECT array_agg(h.term), array_agg(h.theme), array_agg(h.id) INTO hits, themes, ids
    FROM (SELECT look.term, f.theme, f.id
          FROM unnest(terms) AS look (term)
          CROSS JOIN LATERAL (
              SELECT CASE WHEN all_themes THEN r.agent_identity END AS theme, r.id FROM {schema}.{table} AS r
              WHERE r.lexemes @@ (inside && queries[look.term])
                AND CASE WHEN all_themes THEN r.agent_identity = theme OR NOT {schema}.hermes_is_private(r.agent_identity)
                         ELSE r.agent_identity || '' = theme END
                AND (narrow IS NULL OR r.{place} = ANY (narrow))
                AND (since IS NULL OR r.{ts} >= since) AND (until IS NULL OR r.{ts} < until)
                AND (excluded IS NULL OR r.id NOT IN (SELECT unnest(excluded)))
              LIMIT common_from + 1) AS f
          LIMIT hit_limit) AS h;
END $$;
