-- Notes that a home's file was compared, and which forgotten entries it still holds.
UPDATE memory_files SET withheld = %(withheld)s::bytea[], compared_at = clock_timestamp()
WHERE home_id = %(home_id)s AND target = %(target)s;
