-- Note what somebody did; the time, the number and the login come from Postgres.
INSERT INTO audit_log (actor, home_id, action, theme, subject, counts)
VALUES (%(actor)s, %(home_id)s, %(action)s, %(theme)s, %(subject)s, %(counts)s::jsonb)
RETURNING id;
