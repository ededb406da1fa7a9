-- The rows nearest to a question by comparing every row of the theme, or of all themes that scope 'all' may see.
CREATE OR REPLACE FUNCTION hermes_nearest_exact(
    model {vector_row}, theme text, all_themes boolean, narrow text[], since timestamptz, until timestamptz, question halfvec,
    excluded bigint[] DEFAULT NULL,
    OUT themes text[], OUT ids bigint[], OUT similarities real[], OUT copies integer[]
)
    LANGUAGE plpgsql STABLE PARALLEL RESTRICTED SET search_path FROM CURRENT
    SET plan_cache_mode = force_generic_plan SET enable_seqscan = off SET enable_bitmapscan = off
    SET jit = off SET max_parallel_workers_per_gather = 0
    AS $$
DECLARE
    asked CONSTANT halfvec := l2_normalize(question);
BEGIN
    IF all_themes THEN
        SELECT array_agg(n.theme), array_agg(n.id), array_agg(n.similarity), array_agg(n.copies)
        INTO themes, ids, similarities, copies
        FROM (SELECT v.agent_identity AS theme, max(v.id) AS id,
                     (1 - min(cosine_distance(v.embedding, asked)))::real AS similarity,
                     count(DISTINCT v.id)::integer AS copies
              FROM {vectors} AS v
              WHERE (NOT hermes_is_private(v.agent_identity) OR v.agent_identity = theme)
                AND {narrowed} AND (since IS NULL OR v.ts >= since) AND (until IS NULL OR v.ts < until)
                AND (excluded IS NULL OR v.id NOT IN (SELECT unnest(excluded)))
              GROUP BY v.agent_identity, {content_hash} ORDER BY 3 DESC LIMIT 60) AS n;
    ELSE
        SELECT array_agg(theme), array_agg(n.id), array_agg(n.similarity), array_agg(n.copies)
        INTO themes, ids, similarities, copies
        FROM (SELECT max(v.id) AS id, (1 - min(cosine_distance(v.embedding, asked)))::real AS similarity,
                     count(DISTINCT v.id)::integer AS copies
              FROM {vectors} AS v
              WHERE v.agent_identity = theme AND {narrowed}
                AND (since IS NULL OR v.ts >= since) AND (until IS NULL OR v.ts < until)
                AND (excluded IS NULL OR v.id NOT IN (SELECT unnest(excluded)))
              GROUP BY {content_hash} ORDER BY 2 DESC LIMIT 60) AS n;
    END IF;
END $$;
