-- copies the vectors of adopted turns, normalised
WITH copied AS (
    INSERT INTO {turn_vectors} (agent_identity, id, ts, content_hash, embedding)
    SELECT turn.agent_identity, turn.id, turn.ts, hermes_content_hash(turn.content),
           l2_normalize(old.embedding)::halfvec({dim})
    FROM adopted_conversations AS old JOIN conversations AS turn ON turn.id = old.id
    WHERE old.embedding IS NOT NULL AND vector_norm(old.embedding) > 0
    RETURNING 1
) SELECT count(*) FROM copied
