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
