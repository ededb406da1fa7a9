-- The subagents that worked for a session, and the sessions it worked for.
SELECT edge.session_id, edge.child_session_id, edge.ts FROM delegations AS edge
WHERE edge.agent_identity = %(theme)s AND (edge.session_id = %(session_id)s OR edge.child_session_id = %(session_id)s)
ORDER BY edge.ts, edge.id;
