-- Stores vectors of turns; rows whose turn is gone or muted, and vectors already there, are passed over.
--
-- Arrays of equal length, one element per vector: themes, ids, chunks (0 for a text in one piece), vectors (see
-- store.vector_types.vector_array).
INSERT INTO {turn_vectors} (agent_identity, id, chunk, ts, content_hash, embedding)
SELECT turn.agent_identity, turn.id, given.chunk, turn.ts, hermes_content_hash(turn.content), l2_normalize(given.vector)
FROM unnest(%(themes)b::text[], %(ids)b::bigint[], %(chunks)s::smallint[], %(vectors)s::halfvec[])
         AS given (theme, id, chunk, vector)
JOIN conversations AS turn ON turn.agent_identity = given.theme AND turn.id = given.id AND turn.muted_at IS NULL
ON CONFLICT (agent_identity, id, chunk) DO NOTHING;
