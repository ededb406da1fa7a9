-- How much of these tables can be read from the index alone?
SELECT relname::text, relpages, relallvisible FROM pg_class
WHERE oid IN (SELECT to_regclass(name) FROM unnest(%(tables)s::text[]) AS given (name)) ORDER BY 1;
