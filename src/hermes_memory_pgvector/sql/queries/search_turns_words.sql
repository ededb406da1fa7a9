-- The best turns by words alone, for when there is no vector to compare with.
--
-- theme; narrow (session ids, null for all); since, until (until is exclusive; null for open); terms, queries,
-- weights (searchtext.Term, as three arrays); everywhere (false: only the theme); min_similarity, min_coverage;
-- asks_when, speaker, period_start, period_end (what the question says about who and when; null for nothing);
-- half_life_days (0: age does not matter); now; limit.
WITH candidates AS MATERIALIZED (
    SELECT m.agent_identity, m.id, m.coverage, m.is_dated
    FROM hermes_match_turns(
        %(theme)s::text, %(everywhere)s::boolean, %(narrow)s::text[], %(since)s::timestamptz, %(until)s::timestamptz,
        %(terms)s::text[], %(queries)s::text[], %(weights)s::real[], NULL, NULL, 200) AS m
)
SELECT hit.*
FROM (SELECT array_agg(c.agent_identity) AS themes, array_agg(c.id) AS ids, array_agg(NULL::real) AS similarities,
             array_agg(c.coverage) AS coverages, array_agg(c.is_dated) AS dated FROM candidates AS c) AS all_of,
     hermes_rank_turns(
         all_of.themes, all_of.ids, all_of.similarities, all_of.coverages, all_of.dated,
         %(min_similarity)s::real, %(min_coverage)s::real, %(asks_when)s::boolean, %(speaker)s::text,
         %(period_start)s::timestamptz, %(period_end)s::timestamptz,
         %(half_life_days)s::real, %(now)s::timestamptz, %(limit)s::integer) AS hit;
