-- Gives memories of a theme the vectors of the same texts in another one; answers which of them got any.
--
-- theme: whose memories want vectors; former: where the same texts have them. Without the alias of its table, Citus asks
-- the workers for columns of a table that their statement does not name.
WITH known AS MATERIALIZED (
    SELECT same.target, hermes_digest(same.content) AS digest, vector.chunk, vector.embedding::text AS embedding
    FROM memory_entries AS same
    JOIN {memory_vectors} AS vector ON vector.agent_identity = same.agent_identity AND vector.id = same.id
    WHERE same.agent_identity = %(former)s
), copied AS (
    INSERT INTO {memory_vectors} AS made (agent_identity, id, chunk, ts, target, embedding)
    SELECT wanting.agent_identity, wanting.id, known.chunk, wanting.updated_at, wanting.target, known.embedding::halfvec
    FROM memory_entries AS wanting
    JOIN known ON known.target = wanting.target AND known.digest = hermes_digest(wanting.content)
    WHERE wanting.agent_identity = %(theme)s
    RETURNING made.id
)
SELECT DISTINCT id FROM copied;
