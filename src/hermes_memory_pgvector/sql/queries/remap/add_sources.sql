-- Notes which homes hold which entries, unless they are known to.
INSERT INTO memory_sources (agent_identity, entry_id, home_id, origin, since)
SELECT %(theme)s, held.id, held.home_id, held.origin, held.since
FROM unnest(%(ids)s::bigint[], %(home_ids)s::text[], %(origins)s::text[], %(sinces)s::timestamptz[])
     AS held (id, home_id, origin, since)
ON CONFLICT (agent_identity, entry_id, home_id) DO NOTHING;
