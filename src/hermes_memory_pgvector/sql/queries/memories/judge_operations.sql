-- Notes how far to trust what these calls of the memory tool wrote, where it is kept as operations.
--
-- theme; session_id; calls; at: when the turn ended; trust; tools: a JSON object that joins the metadata.
UPDATE memory_operations SET trust = %(trust)s, metadata = metadata || %(tools)s::jsonb
WHERE agent_identity = %(theme)s AND metadata ->> 'session_id' = %(session_id)s
  AND metadata ->> 'tool_call_id' = ANY (%(calls)s::text[]) AND action <> 'remove'
  AND at <= %(at)s::timestamptz;
