-- Turns of one theme or of all, newest first, before a place in time.
--
-- theme: null for all; since, before, before_id: null for open, the place itself is not included; limit. Only the themes
-- whose newest rows are the newest of all can hold one of them, so no more than `limit` themes are read.
WITH theme AS MATERIALIZED (
    SELECT DISTINCT agent_identity FROM theme_growth
    WHERE %(theme)s::text IS NULL OR agent_identity = %(theme)s::text
), newest AS MATERIALIZED (
    SELECT theme.agent_identity
    FROM theme CROSS JOIN LATERAL (
        SELECT turn.ts, turn.id FROM conversations AS turn
        WHERE turn.agent_identity = theme.agent_identity
          AND (%(since)s::timestamptz IS NULL OR turn.ts >= %(since)s::timestamptz)
          AND (%(before)s::timestamptz IS NULL OR turn.ts <= %(before)s::timestamptz
               AND (turn.ts, turn.id) < (%(before)s::timestamptz, %(before_id)s::bigint))
        ORDER BY turn.ts DESC, turn.id DESC LIMIT 1
    ) AS last
    ORDER BY last.ts DESC, last.id DESC LIMIT %(limit)s::integer
)
SELECT found.agent_identity, found.id, found.ts, found.session_id, found.role, found.content, found.muted_at
FROM newest CROSS JOIN LATERAL (
    SELECT turn.* FROM conversations AS turn
    WHERE turn.agent_identity = newest.agent_identity
      AND (%(since)s::timestamptz IS NULL OR turn.ts >= %(since)s::timestamptz)
      AND (%(before)s::timestamptz IS NULL OR turn.ts <= %(before)s::timestamptz
           AND (turn.ts, turn.id) < (%(before)s::timestamptz, %(before_id)s::bigint))
    ORDER BY turn.ts DESC, turn.id DESC LIMIT %(limit)s::integer
) AS found
ORDER BY found.ts DESC, found.id DESC LIMIT %(limit)s::integer;
