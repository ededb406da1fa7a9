-- Makes a quarantine; answers its number. The time is now unless it is known from elsewhere.
INSERT INTO quarantines (actor, home_id, theme, session_id, origin, since, until, is_rule, at)
VALUES (%(actor)s, %(home_id)s, %(theme)s, %(session_id)s, %(origin)s, %(since)s::timestamptz, %(until)s::timestamptz,
        %(is_rule)s, coalesce(%(at)s::timestamptz, clock_timestamp()))
RETURNING id, at;
