-- The best memories of one theme, by meaning and by words; the nearest by bits, from the index alone, are compared exactly.
--
-- theme; narrow (targets, null for all); since, until (until is exclusive; null for open); terms, queries,
-- weights (searchtext.Term, as three arrays); vector, code (its bits), candidates (how many are compared); min_similarity, min_coverage;
-- asks_when, speaker, period_start, period_end (what the question says about who and when; null for nothing);
-- half_life_days (0: age does not matter); now; limit.
WITH nearest AS MATERIALIZED (
    SELECT near.id, min(near.distance) AS distance
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
    SELECT m.agent_identity, m.id, m.coverage, m.is_dated
    FROM hermes_match_memories(
        %(theme)s::text, false, %(narrow)s::text[], %(since)s::timestamptz, %(until)s::timestamptz,
        %(terms)s::text[], %(queries)s::text[], %(weights)s::real[],
        array_fill(%(theme)s::text, ARRAY[(SELECT count(*)::integer FROM nearest)]), ARRAY(SELECT id FROM nearest), 200) AS m
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
