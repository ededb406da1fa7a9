-- Turns with what a scan reads of them, in the order of their keys, above one.
SELECT agent_identity, id, content, metadata FROM conversations
WHERE (agent_identity, id) > (%(theme_after)s, %(id_after)s::bigint)
  AND (%(theme)s::text IS NULL OR agent_identity = %(theme)s)
ORDER BY agent_identity, id LIMIT %(limit)s::integer;
