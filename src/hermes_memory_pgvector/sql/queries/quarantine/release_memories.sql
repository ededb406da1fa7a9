-- Lets searches find the memories of a quarantine again, unless another one holds them.
DELETE FROM quarantined_memories WHERE quarantine_id = %(id)s::bigint;
