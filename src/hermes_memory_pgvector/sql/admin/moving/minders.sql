-- whether rows of a table are changed or counted as they come
SELECT EXISTS (SELECT FROM pg_trigger AS t
               WHERE t.tgrelid = c.oid AND NOT t.tgisinternal AND t.tgname <> 'not_in_use')
FROM pg_class AS c
WHERE c.relnamespace = quote_ident(current_schema())::regnamespace AND c.relname = %s
