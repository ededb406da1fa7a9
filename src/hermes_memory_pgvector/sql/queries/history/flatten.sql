-- Makes these operations plain adds of what they wrote: what was there before them is no longer told.
UPDATE memory_operations SET action = 'add', old_text = '', previous = NULL
WHERE agent_identity = %(theme)s AND id = ANY (%(ids)s::bigint[]);
