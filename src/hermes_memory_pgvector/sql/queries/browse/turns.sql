-- Turns of one theme or of all, newest first, before a place in time.
--
-- theme, origin: null for all; since, before, before_id: null for open, the place itself is not included; limit. Only the themes
-- whose newest rows are the newest of all can hold one of them, so no more than `limit` themes are read, and of those
-- nothing that is older than the oldest of these newest rows.
WITH theme AS MATERIALIZED (
    SELECT DISTINCT agent_identity FROM theme_growth
    WHERE %(theme)s::text IS NULL OR agent_identity = %(theme)s::text
), newest AS MATERIALIZED (
    SELECT theme.agent_identity, last.ts AS at
    FROM theme CROSS JOIN LATERAL (
        SELECT turn.ts FROM conversations AS turn
        WHERE turn.agent_identity = theme.agent_identity
          AND (%(origin)s::text IS NULL OR hermes_is_from(
                   hermes_origin_of_turn(turn.origin, turn.role), turn.trust, turn.metadata, %(origin)s::text))
          AND (%(since)s::timestamptz IS NULL OR turn.ts >= %(since)s::timestamptz)
          AND (%(before)s::timestamptz IS NULL OR turn.ts <= %(before)s::timestamptz
               AND (turn.ts, turn.id) < (%(before)s::timestamptz, %(before_id)s::bigint))
        ORDER BY turn.ts DESC LIMIT 1
    ) AS last
    ORDER BY last.ts DESC FETCH FIRST (%(limit)s::integer) ROWS WITH TIES
), oldest AS MATERIALIZED (
    SELECT CASE WHEN count(*) >= %(limit)s::integer THEN min(newest.at) ELSE '-infinity' END AS at FROM newest
), place AS MATERIALIZED (
    SELECT found.agent_identity, found.id, found.ts AS at
    FROM newest CROSS JOIN oldest CROSS JOIN LATERAL (
        SELECT turn.agent_identity, turn.id, turn.ts FROM conversations AS turn
        WHERE turn.agent_identity = newest.agent_identity
          AND turn.ts >= oldest.at
          AND (%(origin)s::text IS NULL OR hermes_is_from(
                   hermes_origin_of_turn(turn.origin, turn.role), turn.trust, turn.metadata, %(origin)s::text))
          AND (%(since)s::timestamptz IS NULL OR turn.ts >= %(since)s::timestamptz)
          AND (%(before)s::timestamptz IS NULL OR turn.ts <= %(before)s::timestamptz
               AND (turn.ts, turn.id) < (%(before)s::timestamptz, %(before_id)s::bigint))
        ORDER BY turn.ts DESC, turn.id DESC LIMIT %(limit)s::integer
    ) AS found
    ORDER BY found.ts DESC, found.id DESC LIMIT %(limit)s::integer
)
SELECT turn.agent_identity, turn.id, turn.ts, turn.session_id, turn.role, turn.content, turn.muted_at,
       hermes_origin_of_turn(turn.origin, turn.role), turn.trust
FROM place JOIN conversations AS turn ON turn.agent_identity = place.agent_identity AND turn.id = place.id
ORDER BY place.at DESC, place.id DESC;
