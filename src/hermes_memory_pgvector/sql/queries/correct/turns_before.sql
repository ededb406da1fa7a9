-- The two turns before a turn in its session, oldest first.
SELECT earlier.content
FROM (SELECT turn.content, turn.ts, turn.id FROM conversations AS turn
      WHERE turn.agent_identity = %(theme)s AND turn.session_id = %(session_id)s
        AND (turn.ts, turn.id) < (%(at)s::timestamptz, %(id)s::bigint)
      ORDER BY turn.ts DESC, turn.id DESC LIMIT 2) AS earlier
ORDER BY earlier.ts, earlier.id;
