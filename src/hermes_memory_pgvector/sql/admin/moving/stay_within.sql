-- makes names and texts mean the same on both sides for as long as this connection lives
SELECT set_config('search_path', concat_ws(', ', quote_ident(%(schema)s), quote_ident(e.place), 'pg_temp'), false),
       set_config('TimeZone', 'UTC', false), set_config('DateStyle', 'ISO, MDY', false),
       set_config('IntervalStyle', 'postgres', false), set_config('bytea_output', 'hex', false),
       set_config('extra_float_digits', '1', false), set_config('statement_timeout', '0', false),
       set_config('lock_timeout', '0', false), set_config('idle_in_transaction_session_timeout', '0', false),
       set_config('synchronous_commit', 'on', false)
FROM (SELECT (SELECT n.nspname FROM pg_extension AS x JOIN pg_namespace AS n ON n.oid = x.extnamespace
              WHERE x.extname = 'vector') AS place) AS e
