-- Where a theme was moved to, and whether that is finished.
SELECT new, finished_at FROM theme_aliases WHERE old = %(old)s;
