-- The delegations behind these tasks, which were delegated in these sessions.
SELECT edge.agent_identity, edge.id
FROM unnest(%(themes)s::text[], %(session_ids)s::text[], %(tasks)s::text[]) AS given (theme, session_id, task)
JOIN delegations AS edge ON edge.agent_identity = given.theme AND edge.session_id = given.session_id
 AND edge.task_digest = hermes_digest(given.task);
