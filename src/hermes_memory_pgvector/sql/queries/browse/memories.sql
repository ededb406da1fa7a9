-- Memories of one theme or of all, last changed first, before a place in time.
--
-- theme: null for all; since, before, before_id: null for open, the place itself is not included; limit. Only the themes
-- whose newest rows are the newest of all can hold one of them, so no more than `limit` themes are read.
WITH theme AS MATERIALIZED (
    SELECT DISTINCT agent_identity, target.name AS target
    FROM theme_growth CROSS JOIN (VALUES ('memory'), ('user')) AS target (name)
    WHERE %(theme)s::text IS NULL OR agent_identity = %(theme)s::text
), newest AS MATERIALIZED (
    SELECT theme.agent_identity, theme.target
    FROM theme CROSS JOIN LATERAL (
        SELECT entry.updated_at, entry.id FROM memory_entries AS entry
        WHERE entry.agent_identity = theme.agent_identity AND entry.target = theme.target
          AND (%(since)s::timestamptz IS NULL OR entry.updated_at >= %(since)s::timestamptz)
          AND (%(before)s::timestamptz IS NULL OR entry.updated_at <= %(before)s::timestamptz
               AND (entry.updated_at, entry.id) < (%(before)s::timestamptz, %(before_id)s::bigint))
        ORDER BY entry.updated_at DESC, entry.id DESC LIMIT 1
    ) AS last
    ORDER BY last.updated_at DESC, last.id DESC LIMIT %(limit)s::integer
)
SELECT found.agent_identity, found.id, found.updated_at, found.target, found.content, found.muted_at
FROM newest CROSS JOIN LATERAL (
    SELECT entry.* FROM memory_entries AS entry
    WHERE entry.agent_identity = newest.agent_identity AND entry.target = newest.target
      AND (%(since)s::timestamptz IS NULL OR entry.updated_at >= %(since)s::timestamptz)
      AND (%(before)s::timestamptz IS NULL OR entry.updated_at <= %(before)s::timestamptz
           AND (entry.updated_at, entry.id) < (%(before)s::timestamptz, %(before_id)s::bigint))
    ORDER BY entry.updated_at DESC, entry.id DESC LIMIT %(limit)s::integer
) AS found
ORDER BY found.updated_at DESC, found.id DESC LIMIT %(limit)s::integer;
