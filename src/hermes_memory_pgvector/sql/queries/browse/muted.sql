-- The muted memories and turns of one theme or of all, last muted first.
SELECT 'memory', agent_identity, id, updated_at AS at, target, NULL AS session_id, NULL AS role, content, muted_at,
       hermes_origin_of_memory(origin, metadata), trust
FROM memory_entries
WHERE muted_at IS NOT NULL AND (%(theme)s::text IS NULL OR agent_identity = %(theme)s::text)
UNION ALL
SELECT 'turn', agent_identity, id, ts, NULL, session_id, role, content, muted_at,
       hermes_origin_of_turn(origin, role), trust
FROM conversations
WHERE muted_at IS NOT NULL AND (%(theme)s::text IS NULL OR agent_identity = %(theme)s::text)
ORDER BY muted_at DESC, id DESC, 1 LIMIT %(limit)s::integer OFFSET %(skip)s::integer;
