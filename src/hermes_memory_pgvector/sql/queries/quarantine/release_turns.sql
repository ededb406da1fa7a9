-- Lets searches find the turns of a quarantine again, unless another one holds them.
DELETE FROM quarantined_turns WHERE quarantine_id = %(id)s::bigint;
