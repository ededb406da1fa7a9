-- The turns that are left of these sessions, in order, with what they are found by.
SELECT turn.agent_identity, turn.session_id, turn.id, turn.ts, turn.content, turn.lexemes::text,
       turn.metadata
FROM unnest(%(themes)s::text[], %(session_ids)s::text[]) AS asked (theme, session_id)
JOIN conversations AS turn ON turn.agent_identity = asked.theme AND turn.session_id = asked.session_id
ORDER BY turn.agent_identity, turn.session_id, turn.ts, turn.id;
