-- The rows of a theme nearest to a question by code, the nearest first.
--
-- They come from the index of codes alone. excluded: ids to leave out, null for none. Distances are functions, not operators, so that no approximate index can ever
-- serve them.
CREATE OR REPLACE FUNCTION hermes_candidates_in_theme(
    model {vector_row}, theme text, narrow text[], since timestamptz, until timestamptz, asked_code bit varying,
    candidate_limit integer, excluded bigint[] DEFAULT NULL
) RETURNS bigint[]
    LANGUAGE plpgsql STABLE PARALLEL RESTRICTED SET search_path FROM CURRENT
    SET plan_cache_mode = force_generic_plan SET enable_seqscan = off SET enable_bitmapscan = off
    SET jit = off SET max_parallel_workers_per_gather = 0
    AS $$
BEGIN
    -- Distance and id in one number: what is sorted is a number, not a row.
    IF narrow IS NULL AND since IS NULL AND until IS NULL AND excluded IS NULL THEN
        RETURN ARRAY(SELECT n.key & 17592186044415
                     FROM (SELECT (hamming_distance(v.code, asked_code)::bigint << 44) + v.id AS key FROM {vectors} AS v
                           WHERE v.agent_identity = theme ORDER BY key LIMIT candidate_limit) AS n);
    END IF;
    RETURN ARRAY(SELECT n.key & 17592186044415
                 FROM (SELECT (hamming_distance(v.code, asked_code)::bigint << 44) + v.id AS key FROM {vectors} AS v
                       WHERE v.agent_identity = theme AND {narrowed}
                         AND (since IS NULL OR v.ts >= since) AND (until IS NULL OR v.ts < until)
                         AND (excluded IS NULL OR v.id NOT IN (SELECT unnest(excluded)))
                       ORDER BY key LIMIT candidate_limit) AS n);
END $$;
