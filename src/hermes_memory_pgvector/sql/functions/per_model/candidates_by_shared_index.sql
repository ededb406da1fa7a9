-- The rows nearest to a question by code among all that scope 'all' may see, from the approximate index over all themes.
--
-- Compared by operator, which that index can answer, and planned each time: only with its numbers known is it clear
-- whether the index pays. Rows of the theme itself, if it is private, are not in the index and come from their codes.
CREATE OR REPLACE FUNCTION hermes_candidates_by_shared_index(
    model {vector_row}, theme text, narrow text[], since timestamptz, until timestamptz, asked_code bit varying,
    candidate_limit integer, excluded bigint[] DEFAULT NULL, OUT themes text[], OUT ids bigint[]
)
    LANGUAGE plpgsql STABLE PARALLEL RESTRICTED SET search_path FROM CURRENT
    SET plan_cache_mode = force_custom_plan SET enable_seqscan = off SET enable_bitmapscan = off
    SET jit = off SET max_parallel_workers_per_gather = 0
    AS $$
BEGIN
    PERFORM set_config('hnsw.ef_search', least(1000, candidate_limit)::text, true),
            set_config('hnsw.iterative_scan', 'relaxed_order', true);
    SELECT array_agg(c.agent_identity), array_agg(c.id) INTO themes, ids FROM (
        (SELECT v.agent_identity, v.id FROM {vectors} AS v
         WHERE NOT hermes_is_private(v.agent_identity) AND (since IS NULL OR v.ts >= since)
           AND (until IS NULL OR v.ts < until) AND {narrowed} AND (excluded IS NULL OR v.id NOT IN (SELECT unnest(excluded)))
         ORDER BY v.code <~> asked_code LIMIT candidate_limit)
        UNION
        (SELECT v.agent_identity, v.id FROM {vectors} AS v
         WHERE v.agent_identity = theme AND hermes_is_private(theme) AND (since IS NULL OR v.ts >= since)
           AND (until IS NULL OR v.ts < until) AND {narrowed} AND (excluded IS NULL OR v.id NOT IN (SELECT unnest(excluded)))
         ORDER BY hamming_distance(v.code, asked_code) LIMIT candidate_limit)) AS c;
END $$;
