-- Per theme: the last two turns stored in each of these sessions, oldest first.
SELECT asked.theme, asked.session_id, earlier.content
FROM unnest(%(themes)s::text[], %(session_ids)s::text[]) AS asked (theme, session_id)
CROSS JOIN LATERAL (
    SELECT content, ts, id FROM conversations
    WHERE agent_identity = %(theme)s::text AND session_id = asked.session_id
    ORDER BY ts DESC LIMIT 2
) AS earlier
ORDER BY earlier.ts, earlier.id;
