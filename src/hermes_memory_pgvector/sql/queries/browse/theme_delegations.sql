-- The newest delegations of a theme: which session worked for which, and when.
SELECT edge.session_id, edge.child_session_id, edge.ts FROM delegations AS edge
WHERE edge.agent_identity = %(theme)s
ORDER BY edge.ts DESC, edge.id DESC LIMIT %(limit)s::integer;
