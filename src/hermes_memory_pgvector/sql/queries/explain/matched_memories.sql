-- Which of these terms each of these memories contains: the place of the row, and the places of the terms.
SELECT hit.place, array_agg(term.place ORDER BY term.place)
FROM unnest(%(themes)s::text[], %(ids)s::bigint[]) WITH ORDINALITY AS hit (theme, id, place)
JOIN memory_entries AS said ON said.agent_identity = hit.theme AND said.id = hit.id
JOIN unnest(%(own_queries)s::text[]) WITH ORDINALITY AS term (query, place) ON said.lexemes @@ term.query::tsquery
GROUP BY hit.place;
