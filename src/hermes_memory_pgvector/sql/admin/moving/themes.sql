-- how many themes hold memories or turns
SELECT count(*) FROM (SELECT agent_identity FROM memory_entries UNION SELECT agent_identity FROM conversations) AS theme
