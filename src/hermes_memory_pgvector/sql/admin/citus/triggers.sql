-- the triggers of tables that are to be distributed
SELECT c.relname::text, t.tgname::text, pg_get_triggerdef(t.oid)
FROM pg_catalog.pg_trigger AS t JOIN pg_catalog.pg_class AS c ON c.oid = t.tgrelid
WHERE NOT t.tgisinternal AND c.relnamespace = quote_ident(current_schema())::regnamespace AND c.relname = ANY (%s)
ORDER BY c.relname, t.tgname
