-- Notes what a home's file holds now.
UPDATE memory_files SET entries = %(entries)s::jsonb, updated_at = now()
WHERE home_id = %(home_id)s AND target = %(target)s;
