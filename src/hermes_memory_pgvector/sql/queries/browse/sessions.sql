-- The sessions of a theme, last used first, before a time: turns, first and last, what it began with, subagents.
SELECT session.session_id, session.turns, session.first, session.last, session.parent,
       (SELECT left(turn.content, %(chars)s::integer) FROM conversations AS turn
        WHERE turn.agent_identity = %(theme)s AND turn.session_id = session.session_id
        ORDER BY turn.role <> 'user', turn.ts, turn.id LIMIT 1),
       (SELECT count(*) FROM delegations AS edge
        WHERE edge.agent_identity = %(theme)s AND edge.session_id = session.session_id)
FROM (
    SELECT turn.session_id, count(*) AS turns, min(turn.ts) AS first, max(turn.ts) AS last,
           max(turn.parent_session_id) AS parent
    FROM conversations AS turn
    WHERE turn.agent_identity = %(theme)s
    GROUP BY turn.session_id
    HAVING (%(since)s::timestamptz IS NULL OR max(turn.ts) >= %(since)s::timestamptz)
       AND (%(before)s::timestamptz IS NULL OR max(turn.ts) < %(before)s::timestamptz)
    ORDER BY last DESC, turn.session_id LIMIT %(limit)s::integer
) AS session
ORDER BY session.last DESC, session.session_id;
