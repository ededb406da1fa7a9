-- copies the delegations of an earlier installation
INSERT INTO delegations (agent_identity, session_id, child_session_id, task_digest, ts, metadata)
SELECT coalesce(nullif(lower(btrim(parent_identity)), ''), 'default'), coalesce(parent_session_id, ''),
       coalesce(child_session_id, ''), hermes_digest(id::text), ts, attrs || jsonb_build_object('kind', kind)
FROM memory_agent_edges
ON CONFLICT DO NOTHING
