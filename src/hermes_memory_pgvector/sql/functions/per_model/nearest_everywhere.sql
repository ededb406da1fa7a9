-- The rows of all themes that scope 'all' may see nearest to a question, and how near they are.
CREATE OR REPLACE FUNCTION hermes_nearest_everywhere(
    model {vector_row}, theme text, narrow text[], since timestamptz, until timestamptz, question halfvec,
    candidate_limit integer, excluded bigint[] DEFAULT NULL,
    OUT themes text[], OUT ids bigint[], OUT similarities real[], OUT copies integer[]
)
    LANGUAGE plpgsql STABLE PARALLEL RESTRICTED SET search_path FROM CURRENT
    SET plan_cache_mode = force_generic_plan SET enable_seqscan = off SET enable_bitmapscan = off
    SET jit = off SET max_parallel_workers_per_gather = 0
    AS $$
DECLARE
    asked       CONSTANT halfvec := l2_normalize(question);
    code        CONSTANT bit varying := hermes_code(asked);
    has_index   CONSTANT boolean := hermes_has_shared_index('{vectors}'::regclass);
    near_themes text[];
    near_ids    bigint[];
BEGIN
    IF has_index THEN
        SELECT c.themes, c.ids INTO near_themes, near_ids FROM hermes_candidates_by_shared_index(
            model, theme, narrow, since, until, code, least(candidate_limit, 1000), excluded) AS c;
    END IF;
    -- The index gives up when too many rows in a row are left out.
    IF NOT has_index OR excluded IS NOT NULL AND coalesce(cardinality(near_ids), 0) < least(candidate_limit, 600) THEN
        SELECT c.themes, c.ids INTO near_themes, near_ids FROM hermes_candidates_everywhere(
            model, theme, narrow, since, until, code, least(candidate_limit, 600), excluded) AS c;
    END IF;
    SELECT array_agg(n.theme), array_agg(n.id), array_agg(n.similarity), array_agg(n.copies)
    INTO themes, ids, similarities, copies
    FROM (SELECT c.theme, max(v.id) AS id, max(v.similarity) AS similarity, count(DISTINCT v.id)::integer AS copies
          FROM unnest(near_themes, near_ids) AS c (theme, id)
          CROSS JOIN LATERAL (
              SELECT v.id, {content_hash} AS content_hash, (1 - cosine_distance(v.embedding, asked))::real AS similarity
              FROM {vectors} AS v WHERE v.agent_identity = c.theme AND v.id = c.id OFFSET 0) AS v
          GROUP BY c.theme, v.content_hash ORDER BY max(v.similarity) DESC LIMIT 60) AS n;
END $$;
