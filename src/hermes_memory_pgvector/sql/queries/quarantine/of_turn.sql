-- The quarantines a turn is in.
SELECT quarantine_id FROM quarantined_turns WHERE agent_identity = %(theme)s AND id = %(id)s::bigint ORDER BY 1;
