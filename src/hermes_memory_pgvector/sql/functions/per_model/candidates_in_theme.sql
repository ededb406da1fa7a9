-- The rows of a theme nearest to a question by code, the nearest first.
--
-- They come from the index of codes alone. Distances are functions, not operators, so that no approximate index can ever
-- serve them.
CREATE OR REPLACE FUNCTION hermes_candidates_in_theme(
    model {vectors}, theme text, narrow text[], since timestamptz, until timestamptz, asked_code bit varying,
    candidate_limit integer
) RETURNS bigint[]
    LANGUAGE plpgsql STABLE PARALLEL RESTRICTED SET search_path FROM CURRENT
    SET plan_cache_mode = force_generic_plan SET enable_seqscan = off SET enable_bitmapscan = off
    SET jit = off SET max_parallel_workers_per_gather = 0
    AS $$
BEGIN
    -- Distance and id in one number: what is sorted is a number, not a row.
    IF narrow IS NULL AND since IS NULL AND until IS NULL THEN
        RETURN ARRAY(SELECT n.key & 17592186044415
                     FROM (SELECT (hamming_distance(v.code, asked_code)::bigint << 44) + v.id AS key FROM {vectors} AS v
                           WHERE v.agent_identity = theme ORDER BY key LIMIT candidate_limit) AS n);
    END IF;
    RETURN ARRAY(SELECT n.key & 17592186044415
                 FROM (SELECT (hamming_distance(v.code, asked_code)::bigint << 44) + v.id AS key FROM {vectors} AS v
                       WHERE v.agent_identity = theme AND {narrowed}
                         AND (since IS NULL OR v.ts >= since) AND (until IS NULL OR v.ts < until)
                       ORDER BY key LIMIT candidate_limit) AS n);
END $$;
