-- matched_memories --
-- Which of these terms each of these memories contains: the place of the row, and the places of the terms.
SELECT hit.place, array_agg(term.place ORDER BY term.place)
FROM unnest(%(themes)s::text[], %(ids)s::bigint[]) WITH ORDINALITY AS hit (theme, id, place)
JOIN memory_entries AS said ON said.agent_identity = hit.theme AND said.id = hit.id
JOIN unnest(%(own_queries)s::text[]) WITH ORDINALITY AS term (query, place) ON said.lexemes @@ term.query::tsquery
GROUP BY hit.place;


-- matched_turns --
-- Which of these terms each of these turns contains: the place of the row, and the places of the terms.
SELECT hit.place, array_agg(term.place ORDER BY term.place)
FROM unnest(%(themes)s::text[], %(ids)s::bigint[]) WITH ORDINALITY AS hit (theme, id, place)
JOIN conversations AS said ON said.agent_identity = hit.theme AND said.id = hit.id
JOIN unnest(%(own_queries)s::text[]) WITH ORDINALITY AS term (query, place) ON said.lexemes @@ term.query::tsquery
GROUP BY hit.place;


-- near_memories --
-- The memories nearest to a question by meaning, nearest first, as the search finds them.
--
-- theme; all_themes; narrow, since, until: null for open; vector; candidates; min_similarity; limit; trust: see
-- hermes_excluded.
SELECT near.theme, near.id, near.similarity
FROM (
    SELECT found.themes, found.ids, found.similarities
    FROM hermes_nearest_in_theme(
        NULL::{memory_vectors}, %(theme)s::text, %(narrow)s::text[], %(since)s::timestamptz, %(until)s::timestamptz,
        %(vector)s::halfvec, %(candidates)s::integer, %(min_similarity)s::real, %(limit)s::integer,
        hermes_excluded(NULL::memory_entries, %(theme)s::text, %(all_themes)s::boolean, %(trust)s::text)) AS found
    WHERE NOT %(all_themes)s::boolean
    UNION ALL
    SELECT found.themes, found.ids, found.similarities
    FROM hermes_nearest_everywhere(
        NULL::{memory_vectors}, %(theme)s::text, %(narrow)s::text[], %(since)s::timestamptz, %(until)s::timestamptz,
        %(vector)s::halfvec, %(candidates)s::integer,
        hermes_excluded(NULL::memory_entries, %(theme)s::text, %(all_themes)s::boolean, %(trust)s::text)) AS found
    WHERE %(all_themes)s::boolean
) AS rows
CROSS JOIN LATERAL unnest(rows.themes, rows.ids, rows.similarities) AS near (theme, id, similarity)
ORDER BY near.similarity DESC, near.id;


-- near_turns --
-- The turns nearest to a question by meaning, nearest first, as the search finds them.
--
-- theme; all_themes; narrow, since, until: null for open; vector; candidates; min_similarity; limit; trust: see
-- hermes_excluded.
SELECT near.theme, near.id, near.similarity
FROM (
    SELECT found.themes, found.ids, found.similarities
    FROM hermes_nearest_in_theme(
        NULL::{turn_vectors}, %(theme)s::text, %(narrow)s::text[], %(since)s::timestamptz, %(until)s::timestamptz,
        %(vector)s::halfvec, %(candidates)s::integer, %(min_similarity)s::real, %(limit)s::integer,
        hermes_excluded(NULL::conversations, %(theme)s::text, %(all_themes)s::boolean, %(trust)s::text)) AS found
    WHERE NOT %(all_themes)s::boolean
    UNION ALL
    SELECT found.themes, found.ids, found.similarities
    FROM hermes_nearest_everywhere(
        NULL::{turn_vectors}, %(theme)s::text, %(narrow)s::text[], %(since)s::timestamptz, %(until)s::timestamptz,
        %(vector)s::halfvec, %(candidates)s::integer,
        hermes_excluded(NULL::conversations, %(theme)s::text, %(all_themes)s::boolean, %(trust)s::text)) AS found
    WHERE %(all_themes)s::boolean
) AS rows
CROSS JOIN LATERAL unnest(rows.themes, rows.ids, rows.similarities) AS near (theme, id, similarity)
ORDER BY near.similarity DESC, near.id;


-- similarity_of_memory --
-- How near a memory is to a question by meaning: the nearest of its pieces; null without a vector.
SELECT max(1 - cosine_distance(embedding, l2_normalize(%(vector)s::halfvec))) FROM {memory_vectors}
WHERE agent_identity = %(theme)s AND id = %(id)s;


-- similarity_of_turn --
-- How near a turn is to a question by meaning: the nearest of its pieces; null without a vector.
SELECT max(1 - cosine_distance(embedding, l2_normalize(%(vector)s::halfvec))) FROM {turn_vectors}
WHERE agent_identity = %(theme)s AND id = %(id)s;


-- words_memories --
-- The memories whose words tell most of a question, best first, how much each of its terms counts, and which are in no row.
--
-- theme; all_themes; narrow, since, until: null for open; terms, queries, weights: text.lexemes.Term as three arrays.
SELECT found.themes, found.ids, found.idf, found.is_absent
FROM hermes_find_by_words(
    NULL::memory_entries, %(theme)s::text, %(all_themes)s::boolean, %(narrow)s::text[], %(since)s::timestamptz,
    %(until)s::timestamptz, %(terms)s::text[], %(queries)s::text[], %(weights)s::real[], 100,
    hermes_excluded(NULL::memory_entries, %(theme)s::text, %(all_themes)s::boolean, %(trust)s::text)) AS found;


-- words_turns --
-- The turns whose words tell most of a question, best first, how much each of its terms counts, and which are in no row.
--
-- theme; all_themes; narrow, since, until: null for open; terms, queries, weights: text.lexemes.Term as three arrays.
SELECT found.themes, found.ids, found.idf, found.is_absent
FROM hermes_find_by_words(
    NULL::conversations, %(theme)s::text, %(all_themes)s::boolean, %(narrow)s::text[], %(since)s::timestamptz,
    %(until)s::timestamptz, %(terms)s::text[], %(queries)s::text[], %(weights)s::real[], 100,
    hermes_excluded(NULL::conversations, %(theme)s::text, %(all_themes)s::boolean, %(trust)s::text)) AS found;
