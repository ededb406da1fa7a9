-- Which forgotten entries did this file hold when it was last compared, and when was that?
SELECT withheld, nullif(compared_at, '-infinity') FROM memory_files WHERE home_id = %(home_id)s AND target = %(target)s;
