-- The themes in which a session has turns or subagents.
SELECT theme.agent_identity
FROM (SELECT DISTINCT agent_identity FROM theme_growth) AS theme
WHERE EXISTS (SELECT FROM conversations AS turn
              WHERE turn.agent_identity = theme.agent_identity AND turn.session_id = %(session_id)s)
   OR EXISTS (SELECT FROM delegations AS edge
              WHERE edge.agent_identity = theme.agent_identity AND edge.session_id = %(session_id)s)
ORDER BY 1;
