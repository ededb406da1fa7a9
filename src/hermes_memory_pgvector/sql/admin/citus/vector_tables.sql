-- the vector tables of every model
SELECT c.relname::text FROM pg_catalog.pg_class AS c
WHERE c.relkind = 'r' AND c.relnamespace = quote_ident(current_schema())::regnamespace
  AND c.relname ~ '^(turn|memory)_vectors_[0-9]+$' ORDER BY c.relname
