-- Where the turns before one turn of a session stand, the nearest first.
SELECT turn.ts, turn.id
FROM conversations AS turn
JOIN conversations AS named ON named.session_id = turn.session_id
WHERE turn.agent_identity = %(theme)s AND turn.session_id = %(session_id)s
  AND named.agent_identity = %(theme)s AND named.session_id = %(session_id)s AND named.id = %(turn_id)s::bigint
  AND (turn.ts, turn.id) < (named.ts, named.id)
ORDER BY turn.ts DESC, turn.id DESC LIMIT %(limit)s::integer;
