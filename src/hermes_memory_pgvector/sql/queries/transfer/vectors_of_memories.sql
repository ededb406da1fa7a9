-- Gives memories the vectors that an export brought along, as they are; those that have one keep it.
--
-- Arrays of equal length, one element per vector: themes, targets, contents, chunks, vectors (text).
WITH given AS (
    SELECT memory.agent_identity, memory.id, given.chunk, memory.updated_at, memory.target, given.vector
    FROM unnest(%(themes)s::text[], %(targets)s::text[], %(contents)s::text[], %(chunks)s::smallint[], %(vectors)s::text[])
         AS given (theme, target, content, chunk, vector)
    JOIN memory_entries AS memory
      ON memory.agent_identity = given.theme AND memory.target = given.target
     AND hermes_digest(memory.content) = hermes_digest(given.content) AND memory.muted_at IS NULL
), made AS (
    INSERT INTO {memory_vectors} (agent_identity, id, chunk, ts, target, embedding)
    SELECT agent_identity, id, chunk, updated_at, target, vector::halfvec FROM given
    ON CONFLICT (agent_identity, id, chunk) DO NOTHING
)
DELETE FROM pending_vectors AS pending USING given
WHERE pending.agent_identity = given.agent_identity AND pending.kind = 'memory' AND pending.id = given.id;
