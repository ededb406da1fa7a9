-- Gives entries another theme; their vectors go with them.
UPDATE memory_entries AS entry SET agent_identity = %(other)s
FROM unnest(%(ids)s::bigint[]) AS moved (id)
WHERE entry.agent_identity = %(theme)s AND entry.id = moved.id;
