-- Turns of one theme or of all, newest first, before a place in time.
--
-- theme, origin: null for all; since, before, before_id: null for open, the place itself is not included; limit. Only the themes
-- whose newest rows are the newest of all can hold one of them, so no more than `limit` themes are read, and of those
-- nothing that is older than the oldest of these newest rows.
SELECT turn.agent_identity, turn.id, turn.ts, turn.session_id, turn.role, turn.content, turn.muted_at,
       hermes_origin_of_turn(turn.origin, turn.role), turn.trust
FROM conversations AS turn
WHERE (%(theme)s::text IS NULL OR turn.agent_identity = %(theme)s::text)
  AND (%(origin)s::text IS NULL OR hermes_is_from(
           hermes_origin_of_turn(turn.origin, turn.role), turn.trust, turn.metadata, %(origin)s::text))
  AND (%(since)s::timestamptz IS NULL OR turn.ts >= %(since)s::timestamptz)
  AND (%(before)s::timestamptz IS NULL OR turn.ts <= %(before)s::timestamptz
       AND (turn.ts, turn.id) < (%(before)s::timestamptz, %(before_id)s::bigint))
ORDER BY turn.ts DESC, turn.id DESC LIMIT %(limit)s::integer;
