-- Per theme: the memories behind these ids.
SELECT memory.agent_identity, memory.id, memory.content, hermes_digest(memory.content)
FROM unnest(%(themes)b::text[], %(ids)b::bigint[]) AS asked (theme, id)
JOIN memory_entries AS memory ON memory.agent_identity = %(theme)s::text AND memory.id = asked.id AND memory.muted_at IS NULL;
