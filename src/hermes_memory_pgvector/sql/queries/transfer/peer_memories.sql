-- Every memory of a database that is not ours but has the published package's columns.
SELECT agent_identity, target, content, created_at, updated_at, coalesce(metadata, '{}'::jsonb)
FROM memory_entries ORDER BY agent_identity, id;
