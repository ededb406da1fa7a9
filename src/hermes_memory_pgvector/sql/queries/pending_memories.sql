-- The memories behind these ids.
SELECT memory.agent_identity, memory.id, memory.target, memory.content, hermes_digest(memory.content)
FROM unnest(%(themes)s::text[], %(ids)s::bigint[]) AS asked (theme, id)
JOIN memory_entries AS memory ON memory.agent_identity = asked.theme AND memory.id = asked.id;
