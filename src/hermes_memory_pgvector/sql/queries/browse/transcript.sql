-- The turns of a session in order, after a place in time.
SELECT turn.id, turn.ts, turn.role, turn.content, turn.muted_at, turn.parent_session_id, turn.metadata,
       hermes_origin_of_turn(turn.origin, turn.role), turn.trust
FROM conversations AS turn
WHERE turn.agent_identity = %(theme)s AND turn.session_id = %(session_id)s
  AND (%(after)s::timestamptz IS NULL OR (turn.ts, turn.id) > (%(after)s::timestamptz, %(after_id)s::bigint))
ORDER BY turn.ts, turn.id LIMIT %(limit)s::integer;
