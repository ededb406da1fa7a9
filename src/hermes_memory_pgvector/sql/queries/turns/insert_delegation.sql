-- Notes which subagent session worked for which session.
INSERT INTO delegations (agent_identity, session_id, child_session_id, task_digest, ts, metadata, home_id)
VALUES (%(theme)s, %(session_id)s, %(child_session_id)s, hermes_digest(%(task)s), %(ts)s::timestamptz, %(metadata)s::jsonb,
        nullif(%(home_id)s, ''))
ON CONFLICT (agent_identity, session_id, child_session_id, task_digest) DO NOTHING;
