-- Gives logged recalls another theme.
SELECT hermes_move_rows('recall_log'::regclass, %(theme)s::text, %(other)s::text, %(ids)s::bigint[]);
