-- Removes an entry.
DELETE FROM memory_entries WHERE agent_identity = %(theme)s AND id = %(id)s;
