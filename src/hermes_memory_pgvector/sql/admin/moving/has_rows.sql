-- whether a table has rows
SELECT EXISTS (SELECT FROM {table})
