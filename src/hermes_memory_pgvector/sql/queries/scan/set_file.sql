-- Gives a home's file, as last compared, other entries, unless it was compared anew meanwhile.
UPDATE memory_files SET entries = %(entries)s::jsonb
WHERE home_id = %(home_id)s AND target = %(target)s AND entries = %(former)s::jsonb;
