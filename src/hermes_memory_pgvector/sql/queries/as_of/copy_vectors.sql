-- Gives memories of a theme the vectors of the same texts in another one; answers which of them got any.
--
-- theme: whose memories want vectors; former: where the same texts have them.
WITH copied AS (
    INSERT INTO {memory_vectors} (agent_identity, id, chunk, ts, target, embedding)
    SELECT wanting.agent_identity, wanting.id, known.chunk, wanting.updated_at, wanting.target, known.embedding
    FROM memory_entries AS wanting
    JOIN memory_entries AS same ON same.agent_identity = %(former)s AND same.target = wanting.target
     AND hermes_digest(same.content) = hermes_digest(wanting.content)
    JOIN {memory_vectors} AS known ON known.agent_identity = same.agent_identity AND known.id = same.id
    WHERE wanting.agent_identity = %(theme)s
    RETURNING id
)
SELECT DISTINCT id FROM copied;
