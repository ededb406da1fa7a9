-- Which server is this, which extensions could it have, and who are we on it?
SELECT split_part(current_setting('server_version'), ' ', 1),
       current_database()::text,
       current_user::text,
       (SELECT rolsuper FROM pg_roles WHERE rolname = current_user),
       coalesce((SELECT pg_has_role(current_user, relowner, 'USAGE') FROM pg_class
                 WHERE oid = to_regclass('memory_entries')), false),
       (SELECT extversion FROM pg_extension WHERE extname = 'vector'),
       ARRAY(SELECT name::text FROM pg_available_extensions WHERE name = ANY(%(contrib)s::text[]) ORDER BY 1),
       clock_timestamp(),
       pg_database_size(current_database()),
       has_database_privilege(current_database(), 'TEMPORARY'),
       (SELECT quote_ident(n.nspname) FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
        WHERE c.oid = to_regclass('memory_entries') AND has_schema_privilege(n.oid, 'CREATE'));
