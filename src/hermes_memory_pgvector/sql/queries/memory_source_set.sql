-- Notes that a home holds an entry.
INSERT INTO memory_sources (agent_identity, entry_id, home_id, origin, since)
VALUES (%(theme)s, %(id)s, %(home_id)s, %(origin)s, %(since)s::timestamptz)
ON CONFLICT (agent_identity, entry_id, home_id) DO UPDATE SET origin = excluded.origin, since = excluded.since;
