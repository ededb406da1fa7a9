-- Gives delegations another theme.
SELECT hermes_move_rows('delegations'::regclass, %(theme)s::text, %(other)s::text, %(ids)s::bigint[]);
