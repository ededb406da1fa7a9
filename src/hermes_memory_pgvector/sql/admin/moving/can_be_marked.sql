-- whether the schema is of a version that knows where an installation has moved to
SELECT EXISTS (SELECT FROM pg_attribute AS a JOIN pg_class AS c ON c.oid = a.attrelid
               WHERE c.relnamespace = quote_ident(current_schema())::regnamespace
                 AND c.relname = 'hermes_pgvector_installation' AND a.attname = 'moved_to')
