-- The best of some rows for a question: those that hermes_is_hit lets pass, by hermes_rank.
--
-- For the arguments about rows and words see hermes_measure_hits. unrelated: the similarity that unrelated texts can have
-- in this model. needs_both: see hermes_is_hit. Rows of the same text become one hit; further hits of one session step
-- back a little, or, with by_session, behind the best of every other session.
CREATE OR REPLACE FUNCTION hermes_rank_hits(
    source {text_row}, themes text[], ids bigint[], similarities real[], copies integer[],
    queries text[], own_queries text[], is_exact boolean[], idf double precision[], is_absent boolean[],
    min_similarity real, min_coverage real, needs_both boolean, unrelated real, asks_when boolean, speaker text,
    authors text, period_start timestamptz, period_end timestamptz, half_life_days real, now timestamptz,
    by_session boolean, wanted integer
) RETURNS TABLE (agent_identity text, id bigint, ts timestamptz, content text, similarity real, rank real, count integer,
                 place text, role text)
    LANGUAGE plpgsql STABLE PARALLEL RESTRICTED ROWS 10 SET search_path FROM CURRENT
    SET plan_cache_mode = force_generic_plan SET enable_seqscan = off SET enable_bitmapscan = off
    SET jit = off SET max_parallel_workers_per_gather = 0
    AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
    WITH ranked AS (
        SELECT m.*, hermes_rank(m.similarity, unrelated, m.coverage, m.session_coverage, m.answers_when, m.is_in_period,
                                m.is_by_speaker, m.is_by_author, now - m.ts, half_life_days) AS rank
        FROM hermes_measure_hits(source, themes, ids, similarities, copies, queries, own_queries, is_exact, idf, is_absent,
                                 asks_when, speaker, authors, period_start, period_end) AS m
        WHERE hermes_is_hit(m.similarity, m.coverage, m.exact_coverage, min_similarity, min_coverage, needs_both)
    ), folded AS (
        SELECT r.*, row_number() OVER same_text AS copy,
               greatest(max(r.copy_count) OVER same_text, count(*) OVER same_text)::integer AS all_copies
        FROM ranked AS r
        WINDOW same_text AS (PARTITION BY r.agent_identity, r.content_hash ORDER BY r.rank DESC, r.ts DESC, r.id DESC
                             ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING)
    ), best AS (
        SELECT n.*, by_session AND n.before > 0 AS is_further,
               (n.rank - {step}::double precision * least(4, n.before))::real AS final_rank
        FROM (SELECT f.*, row_number() OVER (PARTITION BY f.agent_identity, f.place ORDER BY f.rank DESC, f.id) - 1 AS before
              FROM folded AS f WHERE f.copy = 1) AS n
        ORDER BY is_further, final_rank DESC, n.ts DESC, n.id DESC LIMIT wanted
    )
    SELECT b.agent_identity, b.id, b.ts, t.content, b.similarity, b.final_rank, b.all_copies, b.place, b.role
    FROM best AS b JOIN {table} AS t ON t.agent_identity = b.agent_identity AND t.id = b.id
    ORDER BY b.is_further, b.final_rank DESC, b.ts DESC, b.id DESC;
END $$;
