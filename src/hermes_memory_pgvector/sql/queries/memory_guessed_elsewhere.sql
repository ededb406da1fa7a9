-- In which other themes was this entry put from the home's file at the moment the theme that wrote it announced it?
SELECT entry.agent_identity
FROM memory_sources AS source
JOIN memory_entries AS entry ON entry.agent_identity = source.agent_identity AND entry.id = source.entry_id
WHERE source.home_id = %(home_id)s AND source.origin = 'file' AND source.agent_identity <> %(theme)s
  AND source.since >= %(at)s::timestamptz - interval '5 seconds'
  AND entry.target = %(target)s AND hermes_digest(entry.content) = hermes_digest(%(content)s);
