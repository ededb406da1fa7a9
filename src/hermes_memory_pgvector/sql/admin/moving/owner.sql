-- whether this login owns a table, or is a member of the role that does
SELECT pg_has_role(c.relowner, 'USAGE') FROM pg_class AS c
WHERE c.relnamespace = quote_ident(current_schema())::regnamespace AND c.relname = %s
