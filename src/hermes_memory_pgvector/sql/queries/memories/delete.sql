-- Removes these entries of a theme.
DELETE FROM memory_entries WHERE agent_identity = %(theme)s AND id = ANY (%(ids)s::bigint[]);
