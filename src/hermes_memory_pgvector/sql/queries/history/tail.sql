-- Operations on memories that were stored lately: numbers above one.
SELECT agent_identity, id, target, action, content, old_text, previous, home_id, origin, at, metadata, writer, trust
FROM memory_operations
WHERE id > %(after_id)s::bigint AND (%(theme)s::text IS NULL OR agent_identity = %(theme)s::text)
ORDER BY id;
