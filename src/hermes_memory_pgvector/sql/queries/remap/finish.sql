-- Everything has been moved.
UPDATE theme_aliases SET finished_at = now() WHERE old = %(old)s;
