-- Every edge between a session and its subagent's, for an export.
--
-- theme, session_id, since, until: null for no such limit.
SELECT agent_identity, session_id, child_session_id, encode(task_digest, 'hex'), ts, metadata, home_id
FROM delegations
WHERE (%(theme)s::text IS NULL OR agent_identity = %(theme)s::text)
  AND (%(session_id)s::text IS NULL OR session_id = %(session_id)s::text)
  AND (%(since)s::timestamptz IS NULL OR ts >= %(since)s::timestamptz)
  AND (%(until)s::timestamptz IS NULL OR ts < %(until)s::timestamptz)
ORDER BY agent_identity COLLATE "C", session_id COLLATE "C", ts, child_session_id COLLATE "C", task_digest;
