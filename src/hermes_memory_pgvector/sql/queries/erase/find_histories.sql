-- The histories of memories (theme and target) that hold something somebody names; the options are those of find_memories;
-- above: only operations with a higher number. Metadata count, except names of sessions.
SELECT DISTINCT operation.agent_identity, operation.target
FROM memory_operations AS operation
WHERE (%(theme)s::text IS NULL OR operation.agent_identity = %(theme)s::text)
  AND (%(session_id)s::text IS NULL OR operation.metadata ->> 'session_id' = %(session_id)s::text)
  AND (%(before)s::timestamptz IS NULL OR operation.at < %(before)s::timestamptz)
  AND (%(needles)s::text[] IS NULL
       OR EXISTS (SELECT FROM unnest(%(needles)s::text[]) AS one (needle)
                  WHERE strpos(lower(operation.content), lower(one.needle)) > 0
                     OR strpos(lower(operation.old_text), lower(one.needle)) > 0
                     OR strpos(lower(operation.previous), lower(one.needle)) > 0
                     OR strpos(lower((operation.metadata - %(names)s::text[])::text), lower(one.needle)) > 0))
  AND operation.id > %(above)s::bigint
  AND (operation.at <= %(cut)s::timestamptz OR operation.id <= %(horizon)s::bigint)
ORDER BY 1, 2;
