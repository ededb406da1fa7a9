-- The next turns of a theme that is being moved, each with what the other theme has under its key: whether it is the same
-- saying (no more than `window` seconds apart), and how often the words were said there.
SELECT turn.id, turn.ordinal,
       coalesce((SELECT abs(extract(epoch FROM same.ts - turn.ts)) <= %(window)s::double precision
                 FROM conversations AS same
                 WHERE same.agent_identity = %(other)s AND same.session_id = turn.session_id
                   AND same.digest = turn.digest AND same.ordinal = turn.ordinal), false),
       (SELECT max(same.ordinal) FROM conversations AS same
        WHERE same.agent_identity = %(other)s AND same.session_id = turn.session_id AND same.digest = turn.digest),
       turn.session_id, turn.digest
FROM conversations AS turn
WHERE turn.agent_identity = %(theme)s
ORDER BY turn.id LIMIT %(limit)s::integer;
