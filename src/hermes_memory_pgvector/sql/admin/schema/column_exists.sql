-- whether a table has a column
SELECT EXISTS (SELECT FROM pg_attribute WHERE attrelid = %s::regclass AND attname = %s AND NOT attisdropped)
