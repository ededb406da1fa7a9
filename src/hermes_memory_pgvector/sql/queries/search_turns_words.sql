-- The best turns by words alone, for when there is no vector to compare with.
--
-- theme; narrow (session ids, null for all); since, until (until is exclusive; null for open);
-- terms, queries, own_queries, weights (searchtext.Term, as four arrays); everywhere (false: only the theme);
-- min_similarity, min_coverage; asks_when, speaker, period_start, period_end (what the question says about who and
-- when; null for nothing); half_life_days (0: age does not matter); now; limit.
WITH matched AS MATERIALIZED (
    SELECT m.*
    FROM hermes_match_turns(
        %(theme)s::text, %(everywhere)s::boolean, %(narrow)s::text[], %(since)s::timestamptz, %(until)s::timestamptz,
        %(terms)s::text[], %(queries)s::text[], %(own_queries)s::text[], %(weights)s::real[],
        NULL, NULL, 240) AS m
), candidates AS MATERIALIZED (
    SELECT m.*, meaning.similarity,
           hermes_rank(meaning.similarity, m.coverage, %(asks_when)s::boolean AND m.is_dated,
                       m.ts >= %(period_start)s::timestamptz AND m.ts < %(period_end)s::timestamptz,
                       m.role = %(speaker)s::text, %(now)s::timestamptz - m.ts, %(half_life_days)s::real) AS rank
    FROM matched AS m
    CROSS JOIN LATERAL (SELECT NULL::real AS similarity) AS meaning
), worthy AS (
    SELECT c.*, row_number() OVER same_text AS copy, count(*) OVER same_texts AS copies
    FROM candidates AS c
    WHERE c.similarity >= %(min_similarity)s::real OR c.coverage >= %(min_coverage)s::real
    WINDOW same_text AS (PARTITION BY c.agent_identity, c.twin ORDER BY c.rank DESC, c.ts DESC, c.id DESC),
           same_texts AS (PARTITION BY c.agent_identity, c.twin)
), spread AS (
    SELECT w.*, (w.rank - 0.005 * least(4, row_number() OVER (
               PARTITION BY w.agent_identity, w.place ORDER BY w.rank DESC, w.id) - 1))::real AS final_rank
    FROM worthy AS w WHERE w.copy = 1
), best AS MATERIALIZED (
    SELECT s.* FROM spread AS s ORDER BY s.final_rank DESC, s.ts DESC, s.id DESC LIMIT %(limit)s::integer
)
SELECT b.agent_identity, b.id, b.ts, text.content, b.similarity, b.final_rank AS rank,
       b.copies::integer AS count, b.place AS session_id, b.role
FROM best AS b JOIN conversations AS text ON text.agent_identity = b.agent_identity AND text.id = b.id
ORDER BY b.final_rank DESC, b.ts DESC, b.id DESC;
