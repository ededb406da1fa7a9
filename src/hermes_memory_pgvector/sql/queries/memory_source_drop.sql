-- Notes that a home no longer holds an entry.
DELETE FROM memory_sources WHERE agent_identity = %(theme)s AND entry_id = %(id)s AND home_id = %(home_id)s;
