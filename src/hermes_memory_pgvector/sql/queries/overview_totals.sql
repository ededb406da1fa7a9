-- How many memories, turns and themes are there?
SELECT (SELECT count(*) FROM memory_entries),
       (SELECT count(*) FROM conversations),
       (SELECT count(*) FROM (SELECT agent_identity FROM memory_entries UNION SELECT agent_identity FROM conversations) AS t);
