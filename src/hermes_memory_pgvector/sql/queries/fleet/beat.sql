-- A process lives: how it is doing and what it has counted, until when it is heard of again, or that it has ended.
INSERT INTO agent_processes AS known (id, home_id, host, home, pid, command, kind, version, started_at, seen_at, expected_at,
                                      ended_at, state, counters)
VALUES (%(id)s, %(home_id)s, %(host)s, %(home)s, %(pid)s::integer, %(command)s, %(kind)s, %(version)s,
        now() - make_interval(secs => %(age)s), now(), now() + make_interval(secs => %(silent_seconds)s),
        CASE WHEN %(is_ended)s THEN now() END, %(state)s::jsonb, %(counters)s::jsonb)
ON CONFLICT (id) DO UPDATE SET
    host = excluded.host, home = excluded.home, kind = excluded.kind, version = excluded.version, seen_at = excluded.seen_at,
    expected_at = excluded.expected_at, ended_at = excluded.ended_at, state = excluded.state, counters = excluded.counters;
