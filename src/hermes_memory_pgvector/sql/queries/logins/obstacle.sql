-- why a role cannot be a login of single themes; no row when it can
SELECT CASE
    WHEN pg_has_role(r.oid, c.relowner, 'MEMBER') THEN 'it may act as the owner of the tables'
    WHEN r.rolsuper THEN 'it is a superuser'
    WHEN r.rolbypassrls THEN 'it has BYPASSRLS'
    WHEN r.rolcreaterole THEN 'it has CREATEROLE'
    WHEN r.rolreplication THEN 'it has REPLICATION'
    WHEN EXISTS (SELECT FROM pg_policy AS p, unnest(p.polroles) AS fleet (role)
                 WHERE p.polrelid = c.oid AND p.polname = 'hermes_fleet' AND fleet.role <> 0 AND pg_has_role(r.oid, fleet.role, 'MEMBER'))
        THEN 'it is the fleet''s own role, or a member of it'
    ELSE (SELECT 'it is a member of ' || strong.rolname FROM pg_roles AS strong
          WHERE strong.oid <> r.oid AND pg_has_role(r.oid, strong.oid, 'MEMBER')
            AND (strong.rolsuper OR strong.rolbypassrls OR strong.rolcreaterole
                 OR strong.rolname IN ('pg_read_all_data', 'pg_write_all_data', 'pg_read_server_files',
                                       'pg_write_server_files', 'pg_execute_server_program', 'pg_maintain', 'pg_read_all_stats',
                                       'pg_monitor', 'pg_signal_backend')) LIMIT 1)
    END
FROM pg_roles AS r JOIN pg_class AS c ON c.oid = to_regclass('conversations')
WHERE r.rolname = %(login)s
