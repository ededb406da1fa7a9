-- Per theme: the turns behind these ids, each with the turn before it.
SELECT turn.agent_identity, turn.id, turn.content, (
           SELECT earlier.content FROM conversations AS earlier
           WHERE earlier.agent_identity = %(theme)s::text AND earlier.session_id = turn.session_id
             AND (earlier.ts, earlier.id) < (turn.ts, turn.id)
           ORDER BY earlier.ts DESC, earlier.id DESC LIMIT 1
       ) AS before, hermes_digest(turn.content)
FROM unnest(%(themes)b::text[], %(ids)b::bigint[]) AS asked (theme, id)
JOIN conversations AS turn ON turn.agent_identity = %(theme)s::text AND turn.id = asked.id AND turn.muted_at IS NULL;
