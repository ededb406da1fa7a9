-- What recall answered lately in a theme, newest first.
--
-- session_id, caller: null for any; limit.
SELECT id, at, session_id, caller, kind, scope, query, degraded, hits, milliseconds
FROM recall_log
WHERE agent_identity = %(theme)s
  AND (%(session_id)s::text IS NULL OR session_id = %(session_id)s::text)
  AND (%(caller)s::text IS NULL OR caller = %(caller)s::text)
ORDER BY id DESC LIMIT %(limit)s::integer;
