-- Gives turns the vectors that an export brought along, as they are; those that have one keep it.
--
-- Arrays of equal length, one element per vector: themes, session_ids, digests (hex), words
-- (hex digests of the content that the vector is of), ordinals, chunks, vectors (text).
WITH given AS (
    SELECT turn.agent_identity, turn.id, given.chunk, turn.ts, turn.content, given.vector
    FROM unnest(%(themes)s::text[], %(session_ids)s::text[], %(digests)s::text[], %(words)s::text[],
                %(ordinals)s::integer[], %(chunks)s::smallint[], %(vectors)s::text[])
         AS given (theme, session_id, digest, words, ordinal, chunk, vector)
    JOIN conversations AS turn
      ON turn.agent_identity = given.theme AND turn.session_id = given.session_id
     AND turn.digest = decode(given.digest, 'hex') AND turn.ordinal = given.ordinal
     AND hermes_turn_digest(turn.role, turn.content) = decode(given.words, 'hex') AND turn.muted_at IS NULL
), made AS (
    INSERT INTO {turn_vectors} (agent_identity, id, chunk, ts, content_hash, embedding)
    SELECT agent_identity, id, chunk, ts, hermes_content_hash(content), vector::halfvec FROM given
    ON CONFLICT (agent_identity, id, chunk) DO NOTHING
)
DELETE FROM pending_vectors AS pending USING given
WHERE pending.agent_identity = given.agent_identity AND pending.kind = 'turn' AND pending.id = given.id;
