-- what kind of server and login this is
SELECT current_setting('server_version'), current_setting('server_version_num')::integer,
       current_database()::text, current_schema()::text, pg_encoding_to_char(d.encoding)::text, current_user::text,
       has_database_privilege(current_database(), 'CREATE') OR current_schema() IS NOT NULL AND has_schema_privilege(current_schema(), 'CREATE'),
       pg_is_in_recovery(), pg_database_size(current_database()),
       (SELECT e.extversion::text FROM pg_extension AS e WHERE e.extname = 'vector')
FROM pg_database AS d WHERE d.datname = current_database()
