-- elsewhere --
-- Which schema has our tables, as far as this role may use it, and where does its search_path lead instead?
SELECT relnamespace::regnamespace::text, current_user::text, current_setting('search_path')
FROM pg_catalog.pg_class
WHERE relname = 'hermes_pgvector_migrations' AND relkind = 'r' AND has_schema_privilege(relnamespace, 'USAGE')
ORDER BY relnamespace LIMIT 1;


-- installation_id --
-- Which installation is this?
SELECT id::text FROM hermes_pgvector_installation;


-- installation_state --
-- Can the database say which installation it is, what is it called, and may its server's identifier be read?
SELECT to_regclass('hermes_pgvector_installation') IS NOT NULL,
       current_database()::text,
       has_function_privilege('pg_catalog.pg_control_system()', 'EXECUTE');


-- ledger --
-- Is there a schema of ours where this role's search_path leads?
SELECT to_regclass('hermes_pgvector_migrations');


-- server_identifier --
-- Which server is this? A standby has the identifier of its primary.
SELECT system_identifier::text FROM pg_catalog.pg_control_system();


-- state --
-- Is the database ready: schema version, pgvector's version, and the rights this role needs?
SELECT (SELECT max(version) FROM hermes_pgvector_migrations),
       (SELECT extversion FROM pg_extension WHERE extname = 'vector'),
       has_table_privilege('processes', 'INSERT, UPDATE, DELETE')
           -- With several buckets, the tables of themes are not seen from here.
           AND CASE WHEN to_regclass('journal_writers') IS NULL THEN true
                    ELSE has_table_privilege('journal_writers', 'INSERT, UPDATE')
                         AND has_table_privilege('memory_entries', 'INSERT, UPDATE, DELETE')
                         AND has_table_privilege('conversations', 'INSERT, UPDATE, DELETE') END,
       current_setting('server_version_num')::integer,
       current_user::text,
       -- Otherwise the vectors of deleted rows would stay.
       current_setting('session_replication_role') <> 'replica';
