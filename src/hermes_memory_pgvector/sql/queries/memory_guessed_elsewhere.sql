-- In which other themes was this entry put from the home's file at the moment the theme that wrote it announced it?
-- With each, the place of the newest operation there.
SELECT entry.agent_identity, (SELECT max(operation.order_us) FROM memory_operations AS operation
                              WHERE operation.agent_identity = entry.agent_identity AND operation.target = entry.target)
FROM memory_sources AS source
JOIN memory_entries AS entry ON entry.agent_identity = source.agent_identity AND entry.id = source.entry_id
WHERE source.home_id = %(home_id)s AND source.origin = 'file' AND source.agent_identity <> %(theme)s
  AND source.since >= %(at)s::timestamptz - interval '5 seconds'
  AND entry.target = %(target)s AND hermes_digest(entry.content) = hermes_digest(%(content)s);
