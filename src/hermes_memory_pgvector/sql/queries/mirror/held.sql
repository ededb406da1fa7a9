-- Which entries does this home hold, in which themes and since when?
SELECT entry.agent_identity, entry.content, source.since
FROM memory_sources AS source
JOIN memory_entries AS entry ON entry.agent_identity = source.agent_identity AND entry.id = source.entry_id
WHERE source.home_id = %(home_id)s AND entry.target = %(target)s;
