-- MEMORY.md or USER.md of these homes, as last compared.
SELECT home_id, entries FROM memory_files WHERE target = %(target)s AND home_id = ANY (%(home_ids)s::text[]);
