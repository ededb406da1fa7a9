-- The quarantines a memory is in.
SELECT quarantine_id FROM quarantined_memories WHERE agent_identity = %(theme)s AND id = %(id)s::bigint ORDER BY 1;
