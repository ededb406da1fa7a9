-- Can the database say which installation it is, what is it called, and may its server's identifier be read?
SELECT to_regclass('hermes_pgvector_installation') IS NOT NULL,
       current_database()::text,
       has_function_privilege('pg_catalog.pg_control_system()', 'EXECUTE');
