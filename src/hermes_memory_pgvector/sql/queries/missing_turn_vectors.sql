-- Turns without a vector of this model, newest first, with what document_text needs to embed them.
--
-- theme: one theme, or null for every theme; before_id: ids below it only (null at first), to walk on; limit.
SELECT turn.agent_identity, turn.id, turn.session_id, turn.role, turn.content, turn.ts, turn.metadata, (
           SELECT earlier.content FROM conversations AS earlier
           WHERE earlier.agent_identity = turn.agent_identity AND earlier.session_id = turn.session_id
             AND (earlier.ts, earlier.id) < (turn.ts, turn.id)
           ORDER BY earlier.ts DESC, earlier.id DESC LIMIT 1
       ) AS before
FROM conversations AS turn
WHERE (%(theme)s::text IS NULL OR turn.agent_identity = %(theme)s::text)
  AND (%(before_id)s::bigint IS NULL OR turn.id < %(before_id)s::bigint)
  AND NOT EXISTS (SELECT FROM {turn_vectors} AS known
                  WHERE known.agent_identity = turn.agent_identity AND known.id = turn.id)
ORDER BY turn.id DESC
LIMIT %(limit)s::integer;
