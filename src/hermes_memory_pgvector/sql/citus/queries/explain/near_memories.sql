-- The memories nearest to a question by meaning, nearest first, as the search finds them.
--
-- theme; all_themes; narrow, since, until: null for open; vector; candidates; min_similarity; limit; trust: see
-- hermes_excluded.
SELECT near.seen_in, near.id, near.similarity
FROM hermes_near(
    NULL::{memory_vectors}, %(theme)s::text, %(all_themes)s::boolean, %(narrow)s::text[], %(since)s::timestamptz, %(until)s::timestamptz,
    %(vector)s::halfvec, %(candidates)s::integer, %(min_similarity)s::real, %(limit)s::integer, %(trust)s::text) AS near
ORDER BY near.similarity DESC, near.id;
