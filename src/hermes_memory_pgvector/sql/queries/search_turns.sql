-- The best turns for a question, by meaning and by words.
--
-- source (a model's vector table; conversations for words alone); theme; all_themes (false: only the theme, true: every public
-- one and the theme); narrow (session ids, null for all); since, until (until is exclusive; null for open); terms, queries,
-- own_queries, weights (searchtext.Term, as four arrays); vector, candidates (how many rows are compared exactly; null for
-- words alone); min_similarity, min_coverage; asks_when, speaker, period_start, period_end (what the question says about
-- who and when; null for nothing); half_life_days (0: age does not matter); now; limit.
SELECT agent_identity, id, ts, content, similarity, rank, count, place AS session_id, role
FROM hermes_search(
    NULL::{source}, %(theme)s::text, %(all_themes)s::boolean, %(narrow)s::text[], %(since)s::timestamptz,
    %(until)s::timestamptz, %(terms)s::text[], %(queries)s::text[], %(own_queries)s::text[], %(weights)s::real[],
    %(vector)s::halfvec, %(candidates)s::integer, %(min_similarity)s::real, %(min_coverage)s::real, %(asks_when)s::boolean,
    %(speaker)s::text, %(period_start)s::timestamptz, %(period_end)s::timestamptz, %(half_life_days)s::real,
    %(now)s::timestamptz, %(limit)s::integer);
