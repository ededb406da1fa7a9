-- lets ANALYZE count the words of a table in each of its shards
ALTER TABLE {table} ALTER COLUMN lexemes SET STATISTICS 400
