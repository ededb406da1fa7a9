-- The names of all themes that have turns, found by leaps through the index instead of reading every row.
WITH RECURSIVE found AS (
    (SELECT agent_identity AS theme FROM conversations ORDER BY agent_identity LIMIT 1)
    UNION ALL
    SELECT (SELECT later.agent_identity FROM conversations AS later
            WHERE later.agent_identity > found.theme ORDER BY later.agent_identity LIMIT 1)
    FROM found WHERE found.theme IS NOT NULL
)
SELECT theme FROM found WHERE theme IS NOT NULL;
