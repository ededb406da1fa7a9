-- The rows of a theme nearest to a question, and how near they are.
--
-- Candidates are compared exactly, those nearest by code first. If they are all the rows there are, and no more than 2,000,
-- they are compared at once, which is exact. Otherwise the first portion is a quarter of candidate_limit, but at least 400
-- rows, and each further portion is as large as all before it, until one of them leaves the best hits unchanged.
CREATE OR REPLACE FUNCTION hermes_nearest_in_theme(
    model {vector_row}, theme text, narrow text[], since timestamptz, until timestamptz, question halfvec,
    candidate_limit integer, min_similarity real, wanted integer, excluded bigint[] DEFAULT NULL,
    OUT themes text[], OUT ids bigint[], OUT similarities real[], OUT copies integer[]
)
    LANGUAGE plpgsql STABLE PARALLEL RESTRICTED SET search_path FROM CURRENT
    SET plan_cache_mode = force_generic_plan SET enable_seqscan = off SET enable_bitmapscan = off
    SET jit = off SET max_parallel_workers_per_gather = 0
    AS $$
DECLARE
    asked              CONSTANT halfvec := l2_normalize(question);
    code               CONSTANT bit varying := hermes_code(asked);
    candidates         bigint[];
    compared           integer := 0;
    upto               integer;
    best               real[];
    best_before        real[];
    found_ids          bigint[];
    found_hashes       bigint[];
    found_similarities real[];
BEGIN
    IF narrow IS NULL AND since IS NULL AND until IS NULL AND hermes_has_theme_index('{vectors}'::regclass, theme) THEN
        candidates := hermes_candidates_by_theme_index(model, theme, code, candidate_limit, excluded);
    END IF;
    -- The index gives up when too many rows in a row are left out.
    IF candidates IS NULL OR excluded IS NOT NULL AND cardinality(candidates) < candidate_limit THEN
        candidates := hermes_candidates_in_theme(model, theme, narrow, since, until, code, candidate_limit, excluded);
    END IF;
    upto := CASE WHEN cardinality(candidates) < least(candidate_limit, 2000) THEN 2000
                 ELSE greatest(400, candidate_limit / 4) END;
    LOOP
        SELECT found_ids || array_agg(v.id), found_hashes || array_agg(v.content_hash),
               found_similarities || array_agg(v.similarity)
        INTO found_ids, found_hashes, found_similarities
        FROM (SELECT v.id, {content_hash} AS content_hash, (1 - cosine_distance(v.embedding, asked))::real AS similarity
              FROM {vectors} AS v
              WHERE v.agent_identity = theme AND v.id = ANY (candidates[compared + 1 : upto])) AS v;
        EXIT WHEN upto >= cardinality(candidates);
        best := ARRAY(SELECT DISTINCT f.similarity FROM unnest(found_similarities) AS f (similarity)
                      WHERE f.similarity >= min_similarity ORDER BY 1 DESC LIMIT least(greatest(wanted, 10), 20));
        EXIT WHEN best = best_before;
        best_before := best;
        compared := upto;
        upto := 2 * compared;
    END LOOP;
    SELECT array_agg(theme), array_agg(n.id), array_agg(n.similarity), array_agg(n.copies)
    INTO themes, ids, similarities, copies
    FROM (SELECT max(f.id) AS id, max(f.similarity) AS similarity, count(DISTINCT f.id)::integer AS copies
          FROM unnest(found_ids, found_hashes, found_similarities) AS f (id, content_hash, similarity)
          GROUP BY f.content_hash ORDER BY 2 DESC LIMIT 60) AS n;
END $$;
