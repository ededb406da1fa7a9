-- Entries that nobody has changed since a time.
--
-- cut: that time. among: only these themes; null for all. holder: leave out what another home than this one holds; null does not.
SELECT entry.agent_identity, entry.target, entry.id, entry.content, entry.updated_at
FROM memory_entries AS entry
WHERE entry.updated_at < %(cut)s::timestamptz
  AND (%(among)s::text[] IS NULL OR entry.agent_identity = ANY (%(among)s::text[]))
  AND (%(holder)s::text IS NULL
       OR NOT EXISTS (SELECT FROM memory_sources AS source
                      WHERE source.agent_identity = entry.agent_identity AND source.entry_id = entry.id
                        AND source.home_id <> %(holder)s::text))
ORDER BY entry.agent_identity, entry.target, entry.id;
