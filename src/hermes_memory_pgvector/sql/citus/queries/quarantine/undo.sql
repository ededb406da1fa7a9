-- A quarantine is over: rows that arrive from now on are not held.
UPDATE quarantines SET undone_at = now() WHERE id = %(id)s::bigint AND undone_at IS NULL;
