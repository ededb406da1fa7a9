-- The names of all themes.
SELECT agent_identity FROM conversations GROUP BY 1
UNION SELECT agent_identity FROM memory_operations GROUP BY 1
UNION SELECT agent_identity FROM memory_entries GROUP BY 1
ORDER BY 1;
