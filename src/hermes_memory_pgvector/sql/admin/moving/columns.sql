-- the columns of a table that hold what was stored, and their types
SELECT a.attname::text, format_type(a.atttypid, a.atttypmod)
FROM pg_attribute AS a
WHERE a.attrelid = (quote_ident(current_schema()) || '.' || quote_ident(%s))::regclass
  AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated = ''
ORDER BY a.attname
