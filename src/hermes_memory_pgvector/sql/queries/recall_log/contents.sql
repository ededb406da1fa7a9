-- The texts of these memories and turns, as far as they are still there.
SELECT asked.kind, asked.id, coalesce(entry.content, turn.content)
FROM unnest(%(kinds)s::text[], %(themes)s::text[], %(ids)s::bigint[]) AS asked (kind, theme, id)
LEFT JOIN memory_entries AS entry
  ON asked.kind = 'memory' AND entry.agent_identity = asked.theme AND entry.id = asked.id
LEFT JOIN conversations AS turn ON asked.kind = 'turn' AND turn.agent_identity = asked.theme AND turn.id = asked.id
WHERE coalesce(entry.content, turn.content) IS NOT NULL;
