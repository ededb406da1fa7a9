-- What people and scripts read by hand of the whole installation; see views.sql. With several buckets, the names of their
-- tables and views mean all of them here.

-- The processes of all machines, as each told last. state: live, silent (overdue: killed, or cut off) or ended.
CREATE OR REPLACE VIEW hermes_processes AS
SELECT process.id, process.home_id, process.host, process.pid, process.command, process.version, process.started_at,
       process.seen_at, process.ended_at,
       CASE WHEN process.ended_at IS NOT NULL THEN 'ended' WHEN process.expected_at < now() THEN 'silent' ELSE 'live' END AS state,
       process.status
FROM processes AS process;

-- Numbers for a collector: what stands in `hermes-pgvector metrics`. A counter is a process's own, so that it only grows.
CREATE OR REPLACE VIEW hermes_metrics AS
SELECT 'hermes_pgvector_memories'::text AS name, '{}'::jsonb AS labels, count(*)::double precision AS value FROM memory_entries
UNION ALL SELECT 'hermes_pgvector_turns', '{}', count(*) FROM conversations
UNION ALL SELECT 'hermes_pgvector_themes', '{}', count(*) FROM hermes_theme_names
UNION ALL SELECT 'hermes_pgvector_hidden', '{}', count(*) FROM hermes_rows WHERE hidden_by IS NOT NULL
UNION ALL SELECT 'hermes_pgvector_pending_vectors', '{}', count(*) FROM pending_vectors
UNION ALL SELECT 'hermes_pgvector_rejected_records', '{}', count(*) FROM dead_letters
UNION ALL SELECT 'hermes_pgvector_database_bytes', '{}', pg_database_size(current_database())
UNION ALL SELECT 'hermes_pgvector_processes', jsonb_build_object('home', home_id, 'state', state), count(*)
          FROM hermes_processes GROUP BY home_id, state
UNION ALL SELECT 'hermes_pgvector_seconds_since_heard', jsonb_build_object('home', home_id),
                 extract(epoch FROM now() - max(seen_at)) FROM hermes_processes GROUP BY home_id
UNION ALL SELECT 'hermes_pgvector_trouble', jsonb_build_object('home', home_id, 'process', id, 'what', trouble.key), 1
          FROM hermes_processes CROSS JOIN LATERAL jsonb_each(status -> 'trouble') AS trouble WHERE state = 'live'
UNION ALL SELECT 'hermes_pgvector_' || told.key, jsonb_build_object('home', home_id, 'process', id), told.value::double precision
          FROM hermes_processes CROSS JOIN LATERAL jsonb_each(status) AS told
          WHERE state = 'live' AND jsonb_typeof(told.value) = 'number'
UNION ALL SELECT 'hermes_pgvector_' || split_part(told.key, '|', 1) || '_total',
                 jsonb_build_object('home', home_id, 'process', id)
                 || CASE WHEN told.key LIKE '%|%' THEN jsonb_build_object('of', split_part(told.key, '|', 2)) ELSE '{}' END,
                 told.value::double precision
          FROM hermes_processes CROSS JOIN LATERAL jsonb_each(status -> 'counters') AS told
          WHERE jsonb_typeof(told.value) = 'number';
