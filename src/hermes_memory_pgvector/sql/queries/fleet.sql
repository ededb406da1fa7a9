-- beat --
-- A process lives: how it is doing and what it has counted, until when it is heard of again, or that it has ended.
INSERT INTO processes AS known (id, home_id, host, pid, command, version, started_at, seen_at, expected_at, ended_at, status)
VALUES (%(id)s, %(home_id)s, %(host)s, %(pid)s::integer, %(command)s, %(version)s,
        now() - make_interval(secs => %(age)s), now(), now() + make_interval(secs => %(silent_seconds)s),
        CASE WHEN %(is_ended)s THEN now() END, %(status)s::jsonb)
ON CONFLICT (id) DO UPDATE SET
    host = excluded.host, version = excluded.version, seen_at = excluded.seen_at, expected_at = excluded.expected_at,
    ended_at = excluded.ended_at, status = excluded.status;


-- expire --
-- Processes that ended or fell silent long ago go; those that somebody else deletes are left to him.
DELETE FROM processes WHERE id IN (
    SELECT gone.id FROM processes AS gone
    WHERE gone.ended_at < now() - interval '1 day' OR gone.seen_at < now() - interval '7 days'
    ORDER BY gone.id FOR UPDATE SKIP LOCKED);


-- metrics --
-- The numbers for a collector.
SELECT name, labels, value FROM hermes_metrics ORDER BY name, labels::text;


-- processes --
-- The processes of this database, those at work first, as each told last; and what the database's clock says.
SELECT id, home_id, host, pid, command, version, started_at, seen_at, ended_at, state, status, now()
FROM hermes_processes ORDER BY array_position(ARRAY['live', 'silent', 'ended'], state), seen_at DESC, id LIMIT %(limit)s::integer;
