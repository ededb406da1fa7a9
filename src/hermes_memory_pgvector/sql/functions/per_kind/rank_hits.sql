-- The best of some rows for a question: by meaning, by how well their words cover it, and by what it says about who and
-- when.
--
-- themes, ids: the rows; similarities: their cosines to the question, null without a vector, empty for words alone;
-- copies: how many rows each stands for. own_queries find a term in a row itself, queries also in the turns before it,
-- where it counts less; idf and is_absent come from hermes_find_by_words. Long texts, which contain many words by
-- chance, count less. hermes_is_hit says what is_exact and needs_both are for. Rows of the same text become one hit.
CREATE OR REPLACE FUNCTION hermes_rank_hits(
    source {table}, themes text[], ids bigint[], similarities real[], copies integer[],
    queries text[], own_queries text[], is_exact boolean[], idf double precision[], is_absent boolean[],
    min_similarity real, min_coverage real, needs_both boolean, asks_when boolean, speaker text,
    period_start timestamptz, period_end timestamptz, half_life_days real, now timestamptz, wanted integer
) RETURNS TABLE (agent_identity text, id bigint, ts timestamptz, content text, similarity real, rank real, count integer,
                 place text, role text)
    LANGUAGE plpgsql STABLE PARALLEL RESTRICTED ROWS 10 SET search_path FROM CURRENT
    SET plan_cache_mode = force_generic_plan SET enable_seqscan = off SET enable_bitmapscan = off
    SET jit = off SET max_parallel_workers_per_gather = 0
    AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
    WITH asked AS MATERIALIZED (
        SELECT a.query::tsquery AS query, a.own::tsquery AS own, a.is_exact, a.idf, a.is_absent
        FROM unnest(queries, own_queries, is_exact, idf, is_absent) AS a (query, own, is_exact, idf, is_absent)
        ORDER BY a.idf DESC LIMIT 24
    ), scored AS MATERIALIZED (
        SELECT r.agent_identity, r.id, r.{ts} AS ts, r.{place} AS place, {role} AS role, c.similarity,
               coalesce(c.copies, 1) AS copies, hermes_content_hash(r.content) AS content_hash,
               r.lexemes @@ '~when'::tsquery AS is_dated,
               (coalesce(words.matched / nullif((SELECT sum(a.idf) FROM asked AS a), 0), 0)
                / (1 + ln(greatest(octet_length(r.content), 360) / 360.0::double precision)))::real AS coverage,
               words.exact / nullif((SELECT sum(a.idf) FROM asked AS a), 0) AS exact_coverage
        FROM unnest(themes, ids, similarities, copies) AS c (theme, id, similarity, copies)
        JOIN {table} AS r ON r.agent_identity = c.theme AND r.id = c.id AND r.muted_at IS NULL
        CROSS JOIN LATERAL (
            SELECT sum(CASE WHEN NOT r.lexemes @@ a.query THEN 0 WHEN r.lexemes @@ a.own THEN a.idf ELSE 0.6 * a.idf END)
                       AS matched,
                   sum(a.idf) FILTER (WHERE a.is_exact AND r.lexemes @@ a.own) AS exact
            FROM asked AS a WHERE NOT a.is_absent) AS words
    ), ranked AS (
        SELECT s.*, hermes_rank(s.similarity, s.coverage, asks_when AND s.is_dated, s.ts >= period_start AND s.ts < period_end,
                                s.role = speaker, now - s.ts, half_life_days) AS rank
        FROM scored AS s WHERE hermes_is_hit(s.similarity, s.coverage, s.exact_coverage, min_similarity, min_coverage, needs_both)
    ), folded AS (
        SELECT r.*, row_number() OVER same_text AS copy,
               greatest(max(r.copies) OVER same_text, count(*) OVER same_text)::integer AS all_copies
        FROM ranked AS r
        WINDOW same_text AS (PARTITION BY r.agent_identity, r.content_hash ORDER BY r.rank DESC, r.ts DESC, r.id DESC
                             ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING)
    ), best AS (
        SELECT f.*, (f.rank - {step}::double precision * least(4, row_number() OVER (
                   PARTITION BY f.agent_identity, f.place ORDER BY f.rank DESC, f.id) - 1))::real AS final_rank
        FROM folded AS f WHERE f.copy = 1
        ORDER BY final_rank DESC, f.ts DESC, f.id DESC LIMIT wanted
    )
    SELECT b.agent_identity, b.id, b.ts, t.content, b.similarity, b.final_rank, b.all_copies, b.place, b.role
    FROM best AS b JOIN {table} AS t ON t.agent_identity = b.agent_identity AND t.id = b.id
    ORDER BY b.final_rank DESC, b.ts DESC, b.id DESC;
END $$;
