-- The best memories of all themes the asker may see, by meaning and by words: every public one, and its own.
--
-- The bits of the public rows are compared by operator, which an index made by sql/index_all.sql can answer.
-- theme; narrow (targets, null for all); since, until (until is exclusive; null for open); terms, queries,
-- weights (searchtext.Term, as three arrays); vector, code (its bits), candidates (how many are compared); min_similarity, min_coverage;
-- asks_when, speaker, period_start, period_end (what the question says about who and when; null for nothing);
-- half_life_days (0: age does not matter); now; limit.
WITH public_rows AS MATERIALIZED (
    SELECT v.agent_identity, v.id
    FROM {memory_vectors} AS v
    WHERE NOT hermes_is_private(v.agent_identity)
      AND (%(narrow)s::text[] IS NULL OR v.target = ANY (%(narrow)s::text[]))
      AND (%(since)s::timestamptz IS NULL OR v.ts >= %(since)s::timestamptz)
      AND (%(until)s::timestamptz IS NULL OR v.ts < %(until)s::timestamptz)
    ORDER BY v.code <~> %(code)s LIMIT %(candidates)s::integer
), own_rows AS MATERIALIZED (
    SELECT v.agent_identity, v.id
    FROM {memory_vectors} AS v
    WHERE v.agent_identity = %(theme)s::text AND hermes_is_private(%(theme)s::text)
      AND (%(narrow)s::text[] IS NULL OR v.target = ANY (%(narrow)s::text[]))
      AND (%(since)s::timestamptz IS NULL OR v.ts >= %(since)s::timestamptz)
      AND (%(until)s::timestamptz IS NULL OR v.ts < %(until)s::timestamptz)
    ORDER BY hamming_distance(v.code, %(code)s) LIMIT %(candidates)s::integer
), nearest AS MATERIALIZED (
    SELECT near.agent_identity, near.id, min(near.distance) AS distance
    FROM (SELECT v.agent_identity, v.id, cosine_distance(v.embedding, %(vector)s::halfvec) AS distance
          FROM (TABLE public_rows UNION TABLE own_rows) AS chosen
          CROSS JOIN LATERAL (SELECT * FROM {memory_vectors} AS exact
                              WHERE exact.agent_identity = chosen.agent_identity AND exact.id = chosen.id OFFSET 0) AS v
          ORDER BY distance LIMIT 400) AS near
    GROUP BY near.agent_identity, near.id ORDER BY distance LIMIT 60
), matched AS MATERIALIZED (
    SELECT m.agent_identity, m.id, m.coverage, m.is_dated
    FROM hermes_match_memories(
        %(theme)s::text, true, %(narrow)s::text[], %(since)s::timestamptz, %(until)s::timestamptz,
        %(terms)s::text[], %(queries)s::text[], %(weights)s::real[],
        ARRAY(SELECT agent_identity FROM nearest), ARRAY(SELECT id FROM nearest), 200) AS m
), candidates AS MATERIALIZED (
    SELECT m.*, meaning.similarity
    FROM matched AS m
    CROSS JOIN LATERAL (
        SELECT (1 - min(cosine_distance(v.embedding, %(vector)s::halfvec)))::real AS similarity
        FROM {memory_vectors} AS v WHERE v.agent_identity = m.agent_identity AND v.id = m.id) AS meaning
)
SELECT hit.*
FROM (SELECT array_agg(c.agent_identity) AS themes, array_agg(c.id) AS ids, array_agg(c.similarity) AS similarities,
             array_agg(c.coverage) AS coverages, array_agg(c.is_dated) AS dated FROM candidates AS c) AS all_of,
     hermes_rank_memories(
         all_of.themes, all_of.ids, all_of.similarities, all_of.coverages, all_of.dated,
         %(min_similarity)s::real, %(min_coverage)s::real, %(asks_when)s::boolean, %(speaker)s::text,
         %(period_start)s::timestamptz, %(period_end)s::timestamptz,
         %(half_life_days)s::real, %(now)s::timestamptz, %(limit)s::integer) AS hit;
