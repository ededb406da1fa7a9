-- Entries that somebody names.
--
-- theme, session_id (in which they were written), before, ids: null for any. needles: as in find_turns. cut: none newer.
SELECT entry.agent_identity, entry.target, entry.id, entry.content, entry.updated_at
FROM memory_entries AS entry
WHERE (%(theme)s::text IS NULL OR entry.agent_identity = %(theme)s::text)
  AND (%(session_id)s::text IS NULL OR entry.metadata ->> 'session_id' = %(session_id)s::text)
  AND (%(before)s::timestamptz IS NULL OR entry.updated_at < %(before)s::timestamptz)
  AND (%(ids)s::bigint[] IS NULL OR entry.id = ANY (%(ids)s::bigint[]))
  AND (%(needles)s::text[] IS NULL
       OR EXISTS (SELECT FROM unnest(%(needles)s::text[]) AS one (needle)
                  WHERE strpos(lower(entry.content), lower(one.needle)) > 0))
  AND (entry.updated_at <= %(cut)s::timestamptz OR entry.id <= %(horizon)s::bigint)
ORDER BY entry.agent_identity, entry.target, entry.id;
