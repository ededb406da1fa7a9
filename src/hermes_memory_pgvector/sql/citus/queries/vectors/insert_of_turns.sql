-- Per theme: holds the turns that get vectors, so that an edit at the same moment comes before this or drops them.
SELECT id FROM conversations WHERE agent_identity = %(theme)s::text AND id = ANY (%(ids)s::bigint[]) FOR SHARE;
-- Then:
-- Per theme: stores vectors of turns; rows whose turn is gone, muted or has changed since, and vectors already there, are passed over.
--
-- Arrays of equal length, one element per vector: themes, ids, chunks (0 for a text in one piece), digests (hermes_digest of
-- the content that was embedded), vectors (see store.vector_types.vector_array). The turns are locked: an edit at the same
-- moment comes before this or drops these vectors.
INSERT INTO {turn_vectors} (agent_identity, id, chunk, ts, content_hash, embedding)
SELECT turn.agent_identity, turn.id, given.chunk, turn.ts, hermes_content_hash(turn.content), l2_normalize(given.vector)
FROM unnest(%(themes)b::text[], %(ids)b::bigint[], %(chunks)s::smallint[], %(digests)s::bytea[], %(vectors)s::halfvec[])
         AS given (theme, id, chunk, digest, vector)
JOIN conversations AS turn
  ON turn.agent_identity = %(theme)s::text AND turn.id = given.id AND hermes_digest(turn.content) = given.digest
  AND turn.muted_at IS NULL
ON CONFLICT (agent_identity, id, chunk) DO NOTHING;
