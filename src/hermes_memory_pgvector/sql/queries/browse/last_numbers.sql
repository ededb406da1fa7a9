-- The highest number of a line that counts rows, of a turn in those themes, and of an operation on memories.
SELECT coalesce((SELECT max(id) FROM theme_growth), 0), coalesce((SELECT max(id) FROM memory_operations), 0),
       coalesce((SELECT max(last.id) FROM (SELECT DISTINCT agent_identity FROM theme_growth) AS theme
                 CROSS JOIN LATERAL (SELECT turn.id FROM conversations AS turn
                                     WHERE turn.agent_identity = theme.agent_identity ORDER BY turn.id DESC LIMIT 1) AS last), 0);
