-- insert --
-- Note what somebody did; the time, the number and the login come from Postgres.
INSERT INTO audit_log (actor, home_id, action, theme, subject, counts)
VALUES (%(actor)s, %(home_id)s, %(action)s, %(theme)s, %(subject)s, %(counts)s::jsonb)
RETURNING id;


-- list --
-- What was done, newest first, below a number.
SELECT id, at, actor || CASE WHEN login = session_user THEN '' ELSE ' (' || login || ')' END, action, theme, subject, counts,
       actor, login, home_id
FROM audit_log
WHERE (%(theme)s::text IS NULL OR theme = %(theme)s)
  AND (%(action)s::text IS NULL OR action = %(action)s)
  AND (%(since)s::timestamptz IS NULL OR at >= %(since)s)
  AND (%(until)s::timestamptz IS NULL OR at < %(until)s)
  AND (%(before_id)s::bigint IS NULL OR id < %(before_id)s)
ORDER BY id DESC
LIMIT %(limit)s;
