-- Deletes these operations on a theme's memories.
DELETE FROM memory_operations WHERE agent_identity = %(theme)s AND id = ANY (%(ids)s::bigint[]);
