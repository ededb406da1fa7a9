-- How many memories of each theme a rule is about, how many of those are in a quarantine already, and in how many cases a
-- home has the entry in its file.
--
-- theme, session_id, origin, since, until: null for no such limit.
SELECT entry.agent_identity, count(*), count(*) FILTER (WHERE EXISTS (
           SELECT FROM quarantined_memories AS held WHERE held.agent_identity = entry.agent_identity AND held.id = entry.id)),
       count(*) FILTER (WHERE EXISTS (
           SELECT FROM memory_sources AS source WHERE source.agent_identity = entry.agent_identity AND source.entry_id = entry.id))
FROM memory_entries AS entry
WHERE (%(theme)s::text IS NULL OR entry.agent_identity = %(theme)s::text)
  AND (%(session_id)s::text IS NULL OR entry.metadata ->> 'session_id' = %(session_id)s::text)
  AND (%(origin)s::text IS NULL OR hermes_is_from(
           hermes_origin_of_memory(entry.origin, entry.metadata), entry.trust, entry.metadata, %(origin)s::text))
  AND (%(since)s::timestamptz IS NULL OR entry.updated_at >= %(since)s::timestamptz)
  AND (%(until)s::timestamptz IS NULL OR entry.updated_at < %(until)s::timestamptz)
GROUP BY entry.agent_identity ORDER BY count(*) DESC, entry.agent_identity;
