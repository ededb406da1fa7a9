-- agents --
-- The agents of this database: a theme, as a home works for it; those at work last first.
SELECT agent.agent_identity, agent.home_id, agent.host, agent.kind, agent.version, agent.first_seen, agent.last_seen,
       agent.sessions, agent.turns, agent.memories, agent.recalls
FROM agents AS agent
WHERE %(theme)s::text IS NULL OR agent.agent_identity = %(theme)s::text
ORDER BY agent.last_seen DESC, agent.agent_identity, agent.home_id LIMIT %(limit)s::integer;


-- beat --
-- A process lives: how it is doing and what it has counted, until when it is heard of again, or that it has ended.
INSERT INTO agent_processes AS known (id, home_id, host, home, pid, command, kind, version, started_at, seen_at, expected_at,
                                      ended_at, state, counters)
VALUES (%(id)s, %(home_id)s, %(host)s, %(home)s, %(pid)s::integer, %(command)s, %(kind)s, %(version)s,
        now() - make_interval(secs => %(age)s), now(), now() + make_interval(secs => %(silent_seconds)s),
        CASE WHEN %(is_ended)s THEN now() END, %(state)s::jsonb, %(counters)s::jsonb)
ON CONFLICT (id) DO UPDATE SET
    host = excluded.host, home = excluded.home, kind = excluded.kind, version = excluded.version, seen_at = excluded.seen_at,
    expected_at = excluded.expected_at, ended_at = excluded.ended_at, state = excluded.state, counters = excluded.counters;


-- expire --
-- Processes that ended or fell silent long ago go; what they have counted is added to their home's past.
WITH gone AS (
    DELETE FROM agent_processes AS process
    WHERE process.ended_at < now() - make_interval(secs => %(ended_seconds)s)
       OR process.seen_at < now() - make_interval(secs => %(silent_seconds)s)
    RETURNING process.home_id, process.seen_at, process.counters
), counted AS (
    SELECT counter.home_id, counter.name, sum(counter.value) AS value
    FROM (SELECT gone.home_id, each.key AS name, each.value::numeric AS value
          FROM gone CROSS JOIN LATERAL jsonb_each_text(gone.counters) AS each
          UNION ALL
          SELECT past.home_id, each.key, each.value::numeric
          FROM past_processes AS past CROSS JOIN LATERAL jsonb_each_text(past.counters) AS each
          WHERE past.home_id IN (SELECT gone.home_id FROM gone)) AS counter
    GROUP BY 1, 2
), summed AS (
    SELECT counted.home_id, jsonb_object_agg(counted.name, counted.value) AS counters
    FROM counted GROUP BY 1
)
INSERT INTO past_processes AS past (home_id, processes, last_seen, counters)
SELECT gone.home_id, count(*), max(gone.seen_at),
       coalesce((SELECT summed.counters FROM summed WHERE summed.home_id = gone.home_id), '{}')
FROM gone GROUP BY gone.home_id
ON CONFLICT (home_id) DO UPDATE SET
    processes = past.processes + excluded.processes, last_seen = greatest(past.last_seen, excluded.last_seen),
    counters = excluded.counters;


-- is_alone --
-- Whether nobody else adds up processes that are gone, until the end of this transaction.
SELECT pg_try_advisory_xact_lock(hashtextextended('hermes past processes', 20));


-- note_agents --
-- Agents were at work: so much more each. A theme that has another name now counts under that one.
WITH given AS (
    SELECT coalesce(renamed.new, work.theme) AS theme, max(work.kind) AS kind, sum(work.sessions) AS sessions,
           sum(work.turns) AS turns, sum(work.memories) AS memories, sum(work.recalls) AS recalls
    FROM unnest(%(themes)s::text[], %(kinds)s::text[], %(sessions)s::bigint[], %(turns)s::bigint[], %(memories)s::bigint[],
                %(recalls)s::bigint[]) AS work (theme, kind, sessions, turns, memories, recalls)
    LEFT JOIN theme_aliases AS renamed ON renamed.old = work.theme
    GROUP BY 1
)
INSERT INTO agents AS known (agent_identity, home_id, host, kind, version, sessions, turns, memories, recalls)
SELECT given.theme, %(home_id)s, %(host)s, given.kind, %(version)s, given.sessions, given.turns, given.memories, given.recalls
FROM given
ORDER BY given.theme
ON CONFLICT (agent_identity, home_id) DO UPDATE SET
    last_seen = excluded.last_seen, host = excluded.host, version = excluded.version,
    kind = CASE WHEN excluded.kind = '' THEN known.kind ELSE excluded.kind END,
    sessions = known.sessions + excluded.sessions, turns = known.turns + excluded.turns,
    memories = known.memories + excluded.memories, recalls = known.recalls + excluded.recalls;


-- now --
-- What the clock says by which heartbeats are told.
SELECT now();


-- past --
-- What processes have counted whose rows are gone, home by home.
SELECT past.home_id, past.processes, past.counters FROM past_processes AS past ORDER BY past.home_id;


-- processes --
-- The processes of this database, those that were heard of last first: how each is doing, and whether it is overdue.
SELECT process.id, process.home_id, process.host, process.home, process.pid, process.command, process.kind, process.version,
       process.started_at, process.seen_at, process.ended_at, process.ended_at IS NULL AND process.expected_at < now(),
       process.state, process.counters
FROM agent_processes AS process
ORDER BY process.ended_at IS NOT NULL, process.seen_at DESC, process.id;
