-- Takes memories out of recall that an export says are; arrays of equal length.
INSERT INTO quarantined_memories (agent_identity, id, quarantine_id)
SELECT entry.agent_identity, entry.id, given.quarantine_id
FROM unnest(%(themes)s::text[], %(ids)s::bigint[], %(quarantine_ids)s::bigint[]) AS given (theme, id, quarantine_id)
JOIN memory_entries AS entry ON entry.agent_identity = given.theme AND entry.id = given.id
WHERE NOT EXISTS (
    SELECT FROM quarantined_memories AS held WHERE held.agent_identity = entry.agent_identity AND held.id = entry.id)
ON CONFLICT DO NOTHING;
