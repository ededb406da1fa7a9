-- Gives turns another theme, and the place their words have there; their vectors go with them.
SELECT hermes_move_rows('conversations'::regclass, %(theme)s::text, %(other)s::text, %(ids)s::bigint[], %(ordinals)s::integer[]);
