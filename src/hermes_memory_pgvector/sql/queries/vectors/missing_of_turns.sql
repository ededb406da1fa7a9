-- Turns without a vector of this model and their lengths, newest first.
--
-- theme: one theme, or null for every theme; before_id: only ids below it, null for the first page; limit.
SELECT turn.agent_identity, turn.id, length(turn.content)
FROM conversations AS turn
WHERE (%(theme)s::text IS NULL OR turn.agent_identity = %(theme)s::text)
  AND (%(before_id)s::bigint IS NULL OR turn.id < %(before_id)s::bigint)
  AND turn.muted_at IS NULL
  AND NOT EXISTS (SELECT FROM {turn_vectors} AS known
                  WHERE known.agent_identity = turn.agent_identity AND known.id = turn.id)
ORDER BY turn.id DESC
LIMIT %(limit)s::integer;
