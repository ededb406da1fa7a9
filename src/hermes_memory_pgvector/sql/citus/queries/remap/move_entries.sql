-- Gives entries another theme; their vectors go with them.
SELECT hermes_move_rows('memory_entries'::regclass, %(theme)s::text, %(other)s::text, %(ids)s::bigint[]);
