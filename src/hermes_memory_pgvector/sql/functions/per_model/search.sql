-- The best rows for a question, by meaning and by words.
--
-- candidate_limit: how many rows are compared exactly, at most; the largest integer has every row compared.
-- trust: what may be found, see hermes_excluded.
CREATE OR REPLACE FUNCTION hermes_search(
    model {vector_row}, theme text, all_themes boolean, narrow text[], since timestamptz, until timestamptz,
    terms text[], queries text[], own_queries text[], weights real[], is_exact boolean[], question halfvec,
    candidate_limit integer, min_similarity real, min_coverage real, needs_both boolean, unrelated real, asks_when boolean,
    speaker text, authors text, period_start timestamptz, period_end timestamptz, half_life_days real, now timestamptz,
    by_session boolean, wanted integer, trust text DEFAULT NULL
) RETURNS TABLE (agent_identity text, id bigint, ts timestamptz, content text, similarity real, rank real, count integer,
                 place text, role text)
    LANGUAGE plpgsql STABLE PARALLEL RESTRICTED ROWS 10 SET search_path FROM CURRENT
    SET plan_cache_mode = force_generic_plan SET enable_seqscan = off SET enable_bitmapscan = off
    SET jit = off SET max_parallel_workers_per_gather = 0
    AS $$
#variable_conflict use_column
DECLARE
    asked    CONSTANT halfvec := l2_normalize(question);
    excluded CONSTANT bigint[] := hermes_excluded(NULL::{text_row}, theme, all_themes, trust);
    near  record;
    found record;
    rows  record;
BEGIN
    IF candidate_limit = 2147483647 THEN
        SELECT n.* INTO near FROM hermes_nearest_exact(model, theme, all_themes, narrow, since, until, question, excluded) AS n;
    ELSIF all_themes THEN
        SELECT n.* INTO near
        FROM hermes_nearest_everywhere(model, theme, narrow, since, until, question, candidate_limit, excluded) AS n;
    ELSE
        SELECT n.* INTO near FROM hermes_nearest_in_theme(
            model, theme, narrow, since, until, question, candidate_limit, min_similarity, wanted, excluded) AS n;
    END IF;
    SELECT w.* INTO found
    FROM hermes_find_by_words(
        NULL::{text_row}, theme, all_themes, narrow, since, until, terms, queries, weights, 100, excluded) AS w;

    -- What only words have found is compared too.
    SELECT array_agg(c.theme) AS themes, array_agg(c.id) AS ids, array_agg(c.similarity) AS similarities,
           array_agg(c.copies) AS copies INTO rows
    FROM (SELECT n.theme, n.id, n.similarity, n.copies
          FROM unnest(near.themes, near.ids, near.similarities, near.copies) AS n (theme, id, similarity, copies)
          UNION ALL
          SELECT w.theme, w.id, (SELECT (1 - min(cosine_distance(v.embedding, asked)))::real FROM {vectors} AS v
                                 WHERE v.agent_identity = w.theme AND v.id = w.id), 1
          FROM unnest(found.themes, found.ids) AS w (theme, id)
          WHERE NOT EXISTS (SELECT FROM unnest(near.themes, near.ids) AS n (theme, id)
                            WHERE n.theme = w.theme AND n.id = w.id)) AS c;
    RETURN QUERY
    SELECT h.* FROM hermes_rank_hits(
        NULL::{text_row}, rows.themes, rows.ids, rows.similarities, rows.copies, queries, own_queries, is_exact, found.idf,
        found.is_absent, min_similarity, min_coverage, needs_both, unrelated, asks_when, speaker, authors, period_start,
        period_end, half_life_days, now, by_session, wanted) AS h;
END $$;
