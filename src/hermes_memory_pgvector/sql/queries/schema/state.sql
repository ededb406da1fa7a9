-- Is the database ready: schema version, pgvector's version, and the rights this role needs?
SELECT (SELECT max(version) FROM hermes_pgvector_migrations),
       (SELECT extversion FROM pg_extension WHERE extname = 'vector'),
       has_table_privilege('memory_entries', 'INSERT, UPDATE, DELETE')
           AND has_table_privilege('conversations', 'INSERT, UPDATE, DELETE')
           AND has_table_privilege('journal_writers', 'INSERT, UPDATE'),
       current_setting('server_version_num')::integer,
       current_user::text,
       (SELECT rolsuper FROM pg_roles WHERE rolname = current_user);
