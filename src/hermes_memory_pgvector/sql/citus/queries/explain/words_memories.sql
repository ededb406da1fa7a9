-- The memories whose words tell most of a question, best first, how much each of its terms counts, and which are in no row.
--
-- theme; all_themes; narrow, since, until: null for open; terms, queries, weights: text.lexemes.Term as three arrays.
SELECT found.themes, found.ids, found.idf, found.is_absent
FROM hermes_by_words(
    NULL::memory_entries, %(theme)s::text, %(all_themes)s::boolean, %(narrow)s::text[], %(since)s::timestamptz, %(until)s::timestamptz,
    %(terms)s::text[], %(queries)s::text[], %(weights)s::real[], %(trust)s::text) AS found;
