-- copies the vectors of adopted memories, normalised
WITH copied AS (
    INSERT INTO {memory_vectors} (agent_identity, id, ts, target, embedding)
    SELECT entry.agent_identity, entry.id, entry.updated_at, entry.target, l2_normalize(old.embedding)::halfvec({dim})
    FROM adopted_memory_entries AS old JOIN memory_entries AS entry ON entry.id = old.id
    WHERE old.embedding IS NOT NULL AND vector_norm(old.embedding) > 0
    RETURNING 1
) SELECT count(*) FROM copied
