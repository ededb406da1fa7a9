-- Memories without a vector of this model, newest first.
--
-- theme: one theme, or null for every theme; before_id: only ids below it, null for the first page; limit.
SELECT memory.agent_identity, memory.id
FROM memory_entries AS memory
WHERE (%(theme)s::text IS NULL OR memory.agent_identity = %(theme)s::text)
  AND (%(before_id)s::bigint IS NULL OR memory.id < %(before_id)s::bigint)
  AND memory.muted_at IS NULL
  AND NOT EXISTS (SELECT FROM {memory_vectors} AS known
                  WHERE known.agent_identity = memory.agent_identity AND known.id = memory.id)
ORDER BY memory.id DESC
LIMIT %(limit)s::integer;
