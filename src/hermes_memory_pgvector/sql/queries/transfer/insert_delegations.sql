-- Notes edges of an export, each once; answers how many were new by their themes.
INSERT INTO delegations (agent_identity, session_id, child_session_id, task_digest, ts, metadata, home_id)
SELECT given.theme, given.session_id, given.child_session_id, decode(given.digest, 'hex'), given.ts, given.metadata::jsonb,
       nullif(given.home_id, '')
FROM unnest(%(themes)s::text[], %(session_ids)s::text[], %(child_session_ids)s::text[], %(digests)s::text[],
            %(ts)s::timestamptz[], %(metadata)s::text[], %(home_ids)s::text[])
     AS given (theme, session_id, child_session_id, digest, ts, metadata, home_id)
ON CONFLICT (agent_identity, session_id, child_session_id, task_digest) DO NOTHING
RETURNING agent_identity;
