-- The rows of a very large theme nearest to a question by code, the nearest first, from the theme's own approximate index.
--
-- Planned each time, with the theme as a constant: only so is that index proven to fit.
CREATE OR REPLACE FUNCTION hermes_candidates_by_theme_index(
    model {vector_row}, theme text, asked_code bit varying, candidate_limit integer,
    excluded bigint[] DEFAULT NULL
) RETURNS bigint[]
    LANGUAGE plpgsql STABLE PARALLEL RESTRICTED SET search_path FROM CURRENT
    SET plan_cache_mode = force_custom_plan SET enable_seqscan = off SET enable_bitmapscan = off
    SET jit = off SET max_parallel_workers_per_gather = 0
    AS $$
BEGIN
    PERFORM set_config('hnsw.ef_search', least(1000, candidate_limit)::text, true),
            set_config('hnsw.iterative_scan', 'relaxed_order', true);
    RETURN ARRAY(SELECT n.id
                 FROM (SELECT v.id, v.code FROM {vectors} AS v
                       WHERE v.agent_identity = theme AND (excluded IS NULL OR v.id NOT IN (SELECT unnest(excluded)))
                       ORDER BY v.code <~> asked_code LIMIT candidate_limit) AS n
                 ORDER BY hamming_distance(n.code, asked_code), n.id);
END $$;
