-- The rows nearest to a question by code among all that scope 'all' may see.
CREATE OR REPLACE FUNCTION hermes_candidates_everywhere(
    model {vector_row}, theme text, narrow text[], since timestamptz, until timestamptz, asked_code bit varying,
    candidate_limit integer, excluded bigint[] DEFAULT NULL, OUT themes text[], OUT ids bigint[]
)
    LANGUAGE plpgsql STABLE PARALLEL RESTRICTED SET search_path FROM CURRENT
    SET plan_cache_mode = force_generic_plan SET enable_seqscan = off SET enable_bitmapscan = off
    SET jit = off SET max_parallel_workers_per_gather = 0
    AS $$
DECLARE
    size         integer;
    sample       double precision[];
    max_distance double precision;
BEGIN
    size := (SELECT least(2147483647, c.reltuples) FROM pg_catalog.pg_class AS c WHERE c.oid = '{vectors}'::regclass);
    IF size >= 5000 AND candidate_limit < size / 10 AND narrow IS NULL AND since IS NULL AND until IS NULL THEN
        -- A sample tells within which distance enough rows lie: most of the others need not be sorted. It is large enough
        -- that it rarely tells too small a distance, for then all rows are read a second time.
        SELECT array_agg(s.distance ORDER BY s.distance) INTO sample FROM (
            SELECT hamming_distance(v.code, asked_code) AS distance
            FROM {vectors} AS v
                 TABLESAMPLE SYSTEM (least(100, greatest(200000.0 / size, 1000.0 / candidate_limit))) REPEATABLE (1)) AS s;
        max_distance := sample[1 + cardinality(sample) * 2.5 * candidate_limit / size];
    END IF;
    LOOP
        SELECT array_agg(c.agent_identity), array_agg(c.id) INTO themes, ids FROM (
            SELECT v.agent_identity, v.id FROM {vectors} AS v
            WHERE (max_distance IS NULL OR hamming_distance(v.code, asked_code) <= max_distance)
              AND (NOT hermes_is_private(v.agent_identity) OR v.agent_identity = theme)
              AND (since IS NULL OR v.ts >= since) AND (until IS NULL OR v.ts < until) AND {narrowed}
              AND (excluded IS NULL OR v.id NOT IN (SELECT unnest(excluded)))
            ORDER BY hamming_distance(v.code, asked_code) LIMIT candidate_limit) AS c;
        EXIT WHEN max_distance IS NULL OR cardinality(ids) = candidate_limit;
        max_distance := NULL;
    END LOOP;
END $$;
