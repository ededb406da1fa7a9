-- The best memories of one theme, by meaning and by words, in one statement.
--
-- The theme's rows nearest by code come from the key's index alone, never from an approximate index over all themes;
-- distances are functions, not operators, so that no index of that kind can ever serve this statement.
--
-- theme; narrow (targets, null for all); since, until (until is exclusive; null for open);
-- terms, queries, own_queries, weights (searchtext.Term, as four arrays); vector, code (of the vector), candidates (how many rows are compared exactly);
-- min_similarity, min_coverage; asks_when, speaker, period_start, period_end (what the question says about who and
-- when; null for nothing); half_life_days (0: age does not matter); now; limit.
WITH nearest AS MATERIALIZED (
    SELECT %(theme)s::text AS agent_identity, near.id, min(near.distance) AS distance,
           count(DISTINCT near.id)::integer AS copies
    FROM (SELECT exact.id, cosine_distance(exact.embedding, %(vector)s::halfvec) AS distance
          FROM {memory_vectors} AS exact
          WHERE exact.agent_identity = %(theme)s::text AND exact.id = ANY (ARRAY(
              SELECT v.id
              FROM {memory_vectors} AS v
              WHERE v.agent_identity = %(theme)s::text
                AND (%(narrow)s::text[] IS NULL OR v.target = ANY (%(narrow)s::text[]))
                AND (%(since)s::timestamptz IS NULL OR v.ts >= %(since)s::timestamptz)
                AND (%(until)s::timestamptz IS NULL OR v.ts < %(until)s::timestamptz)
              ORDER BY hamming_distance(v.code, %(code)s) LIMIT %(candidates)s::integer))
          ORDER BY distance LIMIT 400) AS near
    GROUP BY near.id ORDER BY distance LIMIT 60
), matched AS MATERIALIZED (
    SELECT m.*
    FROM hermes_match_memories(
        %(theme)s::text, false, %(narrow)s::text[], %(since)s::timestamptz, %(until)s::timestamptz,
        %(terms)s::text[], %(queries)s::text[], %(own_queries)s::text[], %(weights)s::real[],
        ARRAY(SELECT agent_identity FROM nearest), ARRAY(SELECT id FROM nearest), ARRAY(SELECT copies FROM nearest), 240) AS m
), candidates AS MATERIALIZED (
    SELECT m.*, meaning.similarity,
           hermes_rank(meaning.similarity, m.coverage, %(asks_when)s::boolean AND m.is_dated,
                       m.ts >= %(period_start)s::timestamptz AND m.ts < %(period_end)s::timestamptz,
                       false, %(now)s::timestamptz - m.ts, %(half_life_days)s::real) AS rank
    FROM matched AS m
    CROSS JOIN LATERAL (
        SELECT (1 - min(cosine_distance(v.embedding, %(vector)s::halfvec)))::real AS similarity
        FROM {memory_vectors} AS v WHERE v.agent_identity = m.agent_identity AND v.id = m.id) AS meaning
), worthy AS (
    SELECT c.*, row_number() OVER same_text AS copy, max(c.copies) OVER same_texts AS most_copies,
           count(*) OVER same_texts AS candidates
    FROM candidates AS c
    WHERE c.similarity >= %(min_similarity)s::real OR c.coverage >= %(min_coverage)s::real
    WINDOW same_text AS (PARTITION BY c.agent_identity, c.twin ORDER BY c.rank DESC, c.ts DESC, c.id DESC),
           same_texts AS (PARTITION BY c.agent_identity, c.twin)
), best AS MATERIALIZED (
    SELECT w.*, w.rank AS final_rank FROM worthy AS w WHERE w.copy = 1
    ORDER BY w.rank DESC, w.ts DESC, w.id DESC LIMIT %(limit)s::integer
)
SELECT b.agent_identity, b.id, b.ts, text.content, b.similarity, b.final_rank AS rank,
       greatest(b.most_copies, b.candidates)::integer AS count, b.target
FROM best AS b JOIN memory_entries AS text ON text.agent_identity = b.agent_identity AND text.id = b.id
ORDER BY b.final_rank DESC, b.ts DESC, b.id DESC;
