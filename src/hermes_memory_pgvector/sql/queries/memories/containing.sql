-- Which entries of a theme contain this text, and who holds each? Only what recall may find: nothing muted, nothing in
-- a quarantine. The shortest first, so that an entry that is the text comes before those that contain it.
--
-- theme, also by a name it had before; targets; text; limit.
SELECT entry.target, entry.content,
       coalesce((SELECT array_agg(source.home_id ORDER BY source.home_id) FROM memory_sources AS source
                 WHERE source.agent_identity = entry.agent_identity AND source.entry_id = entry.id), '{}')
FROM memory_entries AS entry
WHERE entry.agent_identity = coalesce((SELECT alias.new FROM theme_aliases AS alias WHERE alias.old = %(theme)s::text), %(theme)s::text)
  AND entry.target = ANY (%(targets)s::text[]) AND strpos(entry.content, %(text)s::text) > 0 AND entry.muted_at IS NULL
  AND NOT EXISTS (SELECT FROM quarantined_memories AS held
                  WHERE held.agent_identity = entry.agent_identity AND held.id = entry.id)
ORDER BY length(entry.content), entry.target
LIMIT %(limit)s::integer;
