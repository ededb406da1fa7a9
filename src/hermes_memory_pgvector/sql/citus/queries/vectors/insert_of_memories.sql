-- Per theme: holds the memories that get vectors, so that an edit at the same moment comes before this or drops them.
SELECT id FROM memory_entries WHERE agent_identity = %(theme)s::text AND id = ANY (%(ids)s::bigint[]) FOR SHARE;
-- Then:
-- Per theme: stores vectors of memories; rows whose memory is gone, muted or has changed since are passed over.
--
-- Arrays of equal length, one element per vector: themes, ids, chunks, digests (hermes_digest of the content that was
-- embedded), vectors (see store.vector_types.vector_array). A vector that is already there is replaced. The memories are
-- locked: an edit at the same moment comes before this or drops these vectors.
INSERT INTO {memory_vectors} (agent_identity, id, chunk, ts, target, embedding)
SELECT memory.agent_identity, memory.id, given.chunk, memory.updated_at, memory.target, l2_normalize(given.vector)
FROM unnest(%(themes)b::text[], %(ids)b::bigint[], %(chunks)s::smallint[], %(digests)s::bytea[], %(vectors)s::halfvec[])
         AS given (theme, id, chunk, digest, vector)
JOIN memory_entries AS memory
  ON memory.agent_identity = %(theme)s::text AND memory.id = given.id AND hermes_digest(memory.content) = given.digest
  AND memory.muted_at IS NULL
ON CONFLICT (agent_identity, id, chunk) DO UPDATE
SET ts = excluded.ts, target = excluded.target, embedding = excluded.embedding;
