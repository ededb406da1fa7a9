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
