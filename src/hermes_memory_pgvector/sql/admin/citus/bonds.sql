-- the foreign keys of tables that are to be distributed, without what follows a change of theme: it is a row's place
SELECT c.relname::text, k.conname::text, replace(pg_get_constraintdef(k.oid), ' ON UPDATE CASCADE', '')
FROM pg_catalog.pg_constraint AS k JOIN pg_catalog.pg_class AS c ON c.oid = k.conrelid
WHERE k.contype = 'f' AND c.relnamespace = quote_ident(current_schema())::regnamespace AND c.relname = ANY (%s)
ORDER BY c.relname, k.conname
