-- notes a login, or changes what it may do
INSERT INTO login_grants (login, may_write, may_create, made_here) VALUES (%(login)s, %(may_write)s, %(may_create)s, %(made_here)s)
ON CONFLICT (login) DO UPDATE SET may_write = excluded.may_write, may_create = excluded.may_create,
                                  granted_at = now(), granted_by = session_user
