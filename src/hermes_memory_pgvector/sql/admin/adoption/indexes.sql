-- the indexes of a table
SELECT indexrelid::regclass::text FROM pg_index WHERE indrelid = %s::regclass
