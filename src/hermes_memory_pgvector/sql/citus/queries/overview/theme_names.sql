-- The names of all themes that have turns.
SELECT agent_identity FROM conversations GROUP BY agent_identity ORDER BY agent_identity;
