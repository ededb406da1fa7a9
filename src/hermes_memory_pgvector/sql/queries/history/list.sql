-- Operations on memories, newest first, below a number.
--
-- theme, since, until, before_id: null for all; limit.
SELECT agent_identity, id, target, action, content, old_text, previous, home_id, origin, at, metadata, writer, trust
FROM memory_operations
WHERE (%(theme)s::text IS NULL OR agent_identity = %(theme)s::text)
  AND (%(since)s::timestamptz IS NULL OR at >= %(since)s::timestamptz)
  AND (%(until)s::timestamptz IS NULL OR at < %(until)s::timestamptz)
  AND (%(before_id)s::bigint IS NULL OR id < %(before_id)s::bigint)
ORDER BY id DESC LIMIT %(limit)s::integer;
