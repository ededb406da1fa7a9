-- Memories of a theme that a quarantine holds, the last changed first, before a place in time.
--
-- theme; id: the quarantine; before, before_id: null for open, the place itself is not included; limit.
SELECT entry.agent_identity, entry.id, entry.updated_at, entry.target, entry.content, entry.muted_at,
       hermes_origin_of_memory(entry.origin, entry.metadata), entry.trust
FROM quarantined_memories AS held
JOIN memory_entries AS entry ON entry.agent_identity = held.agent_identity AND entry.id = held.id
WHERE held.agent_identity = %(theme)s::text AND held.quarantine_id = %(id)s::bigint
  AND (%(before)s::timestamptz IS NULL OR (entry.updated_at, entry.id) < (%(before)s::timestamptz, %(before_id)s::bigint))
ORDER BY entry.updated_at DESC, entry.id DESC LIMIT %(limit)s::integer;
