-- Every theme that holds anything, found by jumping through the indexes.
WITH RECURSIVE turn (theme) AS (
    SELECT min(agent_identity) FROM conversations
    UNION ALL
    SELECT (SELECT min(c.agent_identity) FROM conversations AS c WHERE c.agent_identity > turn.theme)
    FROM turn WHERE turn.theme IS NOT NULL
), operation (theme) AS (
    SELECT min(agent_identity) FROM memory_operations
    UNION ALL
    SELECT (SELECT min(o.agent_identity) FROM memory_operations AS o WHERE o.agent_identity > operation.theme)
    FROM operation WHERE operation.theme IS NOT NULL
), entry (theme) AS (
    SELECT min(agent_identity) FROM memory_entries
    UNION ALL
    SELECT (SELECT min(m.agent_identity) FROM memory_entries AS m WHERE m.agent_identity > entry.theme)
    FROM entry WHERE entry.theme IS NOT NULL
)
SELECT theme FROM turn WHERE theme IS NOT NULL
UNION SELECT theme FROM operation WHERE theme IS NOT NULL
UNION SELECT theme FROM entry WHERE theme IS NOT NULL
ORDER BY 1;
