-- The best turns for a question, by meaning and by words.
--
-- source: a model's vector table, or conversations for words alone. theme: under the name it has now.
-- is_own: whether the theme is the asker's own; nobody else follows an old name into a private theme.
-- all_themes: true adds every public theme.
-- narrow: session ids, null for all. since, until: null for open, until is exclusive.
-- terms, queries, own_queries, weights, is_exact: text.lexemes.Term as five arrays.
-- vector, candidates: the question's vector and how many rows are compared exactly; null for words alone.
-- min_similarity, min_coverage, needs_both: see hermes_is_hit. unrelated: the similarity that unrelated texts can have.
-- asks_when, speaker, authors (a tsquery), period_start, period_end: who and when the question names, null for nothing.
-- half_life_days: 0 leaves age out. now. by_session: the best of each session first. limit. trust: see hermes_excluded.
SELECT hit.agent_identity, hit.id, hit.ts, hit.content, hit.similarity, hit.rank, hit.count, hit.place AS session_id, hit.role,
       hit.origin, hit.trusted AS trust, hit.tools
FROM hermes_found(
    NULL::{source},
    coalesce((SELECT alias.new FROM theme_aliases AS alias
              WHERE alias.old = %(theme)s::text AND (%(is_own)s::boolean OR NOT hermes_is_private(alias.new))),
             %(theme)s::text),
    %(all_themes)s::boolean, %(narrow)s::text[], %(since)s::timestamptz,
    %(until)s::timestamptz, %(terms)s::text[], %(queries)s::text[], %(own_queries)s::text[], %(weights)s::real[],
    %(is_exact)s::boolean[], %(vector)s::halfvec, %(candidates)s::integer, %(min_similarity)s::real, %(min_coverage)s::real,
    %(needs_both)s::boolean, %(unrelated)s::real, %(asks_when)s::boolean, %(speaker)s::text, %(authors)s::text,
    %(period_start)s::timestamptz, %(period_end)s::timestamptz, %(half_life_days)s::real, %(now)s::timestamptz,
    %(by_session)s::boolean, %(limit)s::integer, %(trust)s::text) AS hit
ORDER BY hit.number;
