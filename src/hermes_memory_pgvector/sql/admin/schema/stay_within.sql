-- lets names mean the objects of one schema and of pgvector's until the transaction ends; temporary tables come last
SELECT set_config('search_path', concat_ws(', ', quote_ident(%s), quote_ident(n.nspname), 'pg_temp'), true)
FROM pg_extension AS e
JOIN pg_namespace AS n ON n.oid = e.extnamespace
WHERE e.extname = 'vector'
