-- A name under which other connections see the database as this transaction does.
SELECT pg_export_snapshot();
