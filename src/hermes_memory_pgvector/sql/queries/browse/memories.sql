-- Memories of one theme or of all, last changed first, before a place in time.
--
-- theme, origin: null for all; since, before, before_id: null for open, the place itself is not included; limit. Only the themes
-- whose newest rows are the newest of all can hold one of them, so no more than `limit` themes are read, and of those
-- nothing that is older than the oldest of these newest rows.
WITH theme AS MATERIALIZED (
    SELECT known.agent_identity, target.name AS target
    FROM (SELECT DISTINCT agent_identity FROM theme_growth
          WHERE %(theme)s::text IS NULL OR agent_identity = %(theme)s::text) AS known
    CROSS JOIN (VALUES ('memory'), ('user')) AS target (name)
), newest AS MATERIALIZED (
    SELECT theme.agent_identity, theme.target, last.updated_at AS at
    FROM theme CROSS JOIN LATERAL (
        SELECT entry.updated_at FROM memory_entries AS entry
        WHERE entry.agent_identity = theme.agent_identity AND entry.target = theme.target
          AND (%(origin)s::text IS NULL OR hermes_is_from(
                   hermes_origin_of_memory(entry.origin, entry.metadata), entry.trust, entry.metadata, %(origin)s::text))
          AND (%(since)s::timestamptz IS NULL OR entry.updated_at >= %(since)s::timestamptz)
          AND (%(before)s::timestamptz IS NULL OR entry.updated_at <= %(before)s::timestamptz
               AND (entry.updated_at, entry.id) < (%(before)s::timestamptz, %(before_id)s::bigint))
        ORDER BY entry.updated_at DESC LIMIT 1
    ) AS last
    ORDER BY last.updated_at DESC FETCH FIRST (%(limit)s::integer) ROWS WITH TIES
), oldest AS MATERIALIZED (
    SELECT CASE WHEN count(*) >= %(limit)s::integer THEN min(newest.at) ELSE '-infinity' END AS at FROM newest
), place AS MATERIALIZED (
    SELECT found.agent_identity, found.id, found.updated_at AS at
    FROM newest CROSS JOIN oldest CROSS JOIN LATERAL (
        SELECT entry.agent_identity, entry.id, entry.updated_at FROM memory_entries AS entry
        WHERE entry.agent_identity = newest.agent_identity AND entry.target = newest.target
          AND entry.updated_at >= oldest.at
          AND (%(origin)s::text IS NULL OR hermes_is_from(
                   hermes_origin_of_memory(entry.origin, entry.metadata), entry.trust, entry.metadata, %(origin)s::text))
          AND (%(since)s::timestamptz IS NULL OR entry.updated_at >= %(since)s::timestamptz)
          AND (%(before)s::timestamptz IS NULL OR entry.updated_at <= %(before)s::timestamptz
               AND (entry.updated_at, entry.id) < (%(before)s::timestamptz, %(before_id)s::bigint))
        ORDER BY entry.updated_at DESC, entry.id DESC LIMIT %(limit)s::integer
    ) AS found
    ORDER BY found.updated_at DESC, found.id DESC LIMIT %(limit)s::integer
)
SELECT entry.agent_identity, entry.id, entry.updated_at, entry.target, entry.content, entry.muted_at,
       hermes_origin_of_memory(entry.origin, entry.metadata), entry.trust
FROM place JOIN memory_entries AS entry ON entry.agent_identity = place.agent_identity AND entry.id = place.id
ORDER BY place.at DESC, place.id DESC;
