-- Some memories that a rule is about, the last changed first.
SELECT entry.agent_identity, entry.id, entry.updated_at, entry.target, left(entry.content, 2000), entry.muted_at,
       hermes_origin_of_memory(entry.origin, entry.metadata), entry.trust
FROM memory_entries AS entry
WHERE (%(theme)s::text IS NULL OR entry.agent_identity = %(theme)s::text)
  AND (%(session_id)s::text IS NULL OR entry.metadata ->> 'session_id' = %(session_id)s::text)
  AND (%(origin)s::text IS NULL OR hermes_is_from(
           hermes_origin_of_memory(entry.origin, entry.metadata), entry.trust, entry.metadata, %(origin)s::text))
  AND (%(since)s::timestamptz IS NULL OR entry.updated_at >= %(since)s::timestamptz)
  AND (%(until)s::timestamptz IS NULL OR entry.updated_at < %(until)s::timestamptz)
ORDER BY entry.updated_at DESC, entry.id DESC LIMIT %(limit)s::integer;
