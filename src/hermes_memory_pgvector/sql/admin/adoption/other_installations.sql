-- other schemas of this database in which memories are kept
SELECT DISTINCT n.nspname
FROM pg_class AS c
JOIN pg_namespace AS n ON n.oid = c.relnamespace
WHERE c.relkind IN ('r', 'p') AND c.relname = ANY (%(tables)s) AND n.nspname <> %(schema)s
ORDER BY 1
