-- Which homes hold these entries of a theme.
SELECT source.entry_id, source.home_id, source.origin, source.since
FROM memory_sources AS source
WHERE source.agent_identity = %(theme)s AND source.entry_id = ANY (%(ids)s::bigint[]);
