-- The best rows for a question by words alone; question and candidate_limit say nothing here.
--
-- Called like the search of a vector table, with the table of texts in its place. trust: see hermes_excluded.
CREATE OR REPLACE FUNCTION hermes_search(
    source {text_row}, theme text, all_themes boolean, narrow text[], since timestamptz, until timestamptz,
    terms text[], queries text[], own_queries text[], weights real[], is_exact boolean[], question halfvec,
    candidate_limit integer, min_similarity real, min_coverage real, needs_both boolean, unrelated real, asks_when boolean,
    speaker text, authors text, period_start timestamptz, period_end timestamptz, half_life_days real, now timestamptz,
    by_session boolean, wanted integer, trust text DEFAULT NULL
) RETURNS TABLE (agent_identity text, id bigint, ts timestamptz, content text, similarity real, rank real, count integer,
                 place text, role text)
    LANGUAGE plpgsql STABLE PARALLEL RESTRICTED ROWS 10 SET search_path FROM CURRENT
    SET plan_cache_mode = force_generic_plan
    AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
    SELECT h.*
    FROM hermes_find_by_words(source, theme, all_themes, narrow, since, until, terms, queries, weights, 240,
                              hermes_excluded(source, theme, all_themes, trust)) AS w,
         hermes_rank_hits(source, w.themes, w.ids, NULL, NULL, queries, own_queries, is_exact, w.idf, w.is_absent,
                          min_similarity, min_coverage, needs_both, unrelated, asks_when, speaker, authors, period_start,
                          period_end, half_life_days, now, by_session, wanted) AS h;
END $$;
