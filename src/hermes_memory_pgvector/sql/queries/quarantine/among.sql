-- Which of these turns and memories of a theme some quarantine holds: whether it is a turn, and its id.
SELECT DISTINCT true, held.id FROM quarantined_turns AS held
WHERE held.agent_identity = %(theme)s::text AND held.id = ANY (%(turn_ids)s::bigint[])
UNION ALL
SELECT DISTINCT false, held.id FROM quarantined_memories AS held
WHERE held.agent_identity = %(theme)s::text AND held.id = ANY (%(memory_ids)s::bigint[]);
