-- the logins that were granted single themes: name, rights, themes by name, themes it has begun, whether it exists
SELECT g.login, g.may_write, g.may_create,
       ARRAY(SELECT t.theme FROM login_themes AS t WHERE t.login = g.login AND NOT t.is_begun ORDER BY 1),
       ARRAY(SELECT t.theme FROM login_themes AS t WHERE t.login = g.login AND t.is_begun ORDER BY 1),
       g.granted_at, g.granted_by, coalesce((SELECT r.rolcanlogin FROM pg_roles AS r WHERE r.rolname = g.login), false)
FROM login_grants AS g ORDER BY g.login
