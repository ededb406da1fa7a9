-- Notes how far to trust entries whose words are those that these calls of the memory tool wrote.
--
-- theme; session_id; calls; at: when the turn ended; trust; tools: a JSON object that joins the metadata.
UPDATE memory_entries SET trust = %(trust)s, metadata = metadata || %(tools)s::jsonb
WHERE agent_identity = %(theme)s AND metadata ->> 'session_id' = %(session_id)s
  AND metadata ->> 'tool_call_id' = ANY (%(calls)s::text[]) AND updated_at <= %(at)s::timestamptz;
