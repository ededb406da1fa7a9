-- Every turn of a database that is not ours but has the published package's columns, with its place among equal ones.
SELECT agent_identity, session_id, role, content, ts, coalesce(metadata, '{}'::jsonb),
       row_number() OVER (PARTITION BY agent_identity, session_id, role, content ORDER BY ts, id)
FROM conversations ORDER BY agent_identity, session_id, ts, id;
