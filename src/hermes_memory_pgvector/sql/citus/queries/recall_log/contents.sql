-- Per theme: the texts of these memories and turns, as far as they are still there.
SELECT asked.kind, asked.id, entry.content
FROM unnest(%(kinds)s::text[], %(ids)s::bigint[]) AS asked (kind, id)
JOIN memory_entries AS entry ON entry.agent_identity = %(theme)s::text AND entry.id = asked.id
WHERE asked.kind = 'memory'
UNION ALL
SELECT asked.kind, asked.id, turn.content
FROM unnest(%(kinds)s::text[], %(ids)s::bigint[]) AS asked (kind, id)
JOIN conversations AS turn ON turn.agent_identity = %(theme)s::text AND turn.id = asked.id
WHERE asked.kind = 'turn';
