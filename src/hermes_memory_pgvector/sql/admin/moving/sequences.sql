-- the sequences that number the rows of these tables
SELECT DISTINCT s.relname::text
FROM pg_depend AS d
JOIN pg_class AS s ON s.oid = d.objid AND s.relkind = 'S'
JOIN pg_class AS t ON t.oid = d.refobjid
WHERE d.classid = 'pg_class'::regclass AND d.refclassid = 'pg_class'::regclass AND d.deptype IN ('a', 'i')
  AND t.relnamespace = quote_ident(current_schema())::regnamespace AND t.relname = ANY (%s)
ORDER BY 1
