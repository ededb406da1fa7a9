-- A home's file as last compared, without what was forgotten.
UPDATE memory_files SET entries = %(entries)s::jsonb, withheld = %(withheld)s::bytea[]
WHERE home_id = %(home_id)s AND target = %(target)s;
