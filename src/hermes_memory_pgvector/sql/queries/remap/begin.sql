-- From now on, what is written to one theme goes to another; a move that was begun goes on.
INSERT INTO theme_aliases (old, new) VALUES (%(old)s, %(new)s)
ON CONFLICT (old) DO UPDATE SET new = excluded.new, finished_at = NULL;
