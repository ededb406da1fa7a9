-- The themes and targets that have memories or a history of them.
SELECT agent_identity, target FROM memory_operations WHERE %(theme)s::text IS NULL OR agent_identity = %(theme)s
UNION
SELECT agent_identity, target FROM memory_entries WHERE %(theme)s::text IS NULL OR agent_identity = %(theme)s
ORDER BY 1, 2;
