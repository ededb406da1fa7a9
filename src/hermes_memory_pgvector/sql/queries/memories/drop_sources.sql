-- Notes which homes no longer hold which entries of a theme.
DELETE FROM memory_sources AS source
USING unnest(%(ids)s::bigint[], %(home_ids)s::text[]) AS dropped (id, home_id)
WHERE source.agent_identity = %(theme)s AND source.entry_id = dropped.id AND source.home_id = dropped.home_id;
