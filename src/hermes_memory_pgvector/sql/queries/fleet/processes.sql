-- The processes of this database, those that were heard of last first: how each is doing, and whether it is overdue.
SELECT process.id, process.home_id, process.host, process.home, process.pid, process.command, process.kind, process.version,
       process.started_at, process.seen_at, process.ended_at, process.ended_at IS NULL AND process.expected_at < now(),
       process.state, process.counters
FROM agent_processes AS process
ORDER BY process.ended_at IS NOT NULL, process.seen_at DESC, process.id;
