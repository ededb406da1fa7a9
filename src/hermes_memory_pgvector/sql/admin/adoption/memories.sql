-- copies the memories of an earlier installation; themes are case-folded, and a row whose folded theme already has it keeps its own
WITH copied AS (
    INSERT INTO memory_entries (agent_identity, id, target, content, created_at, updated_at, metadata, origin)
    SELECT {theme}, id, target, content, created_at, updated_at, metadata, 'import' FROM adopted_memory_entries AS old
    WHERE NOT EXISTS (SELECT FROM memory_entries AS known WHERE known.id = old.id)
    ORDER BY id
    ON CONFLICT DO NOTHING RETURNING 1
) SELECT count(*) FROM copied
