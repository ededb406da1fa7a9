-- The theme and target of the operation with this number.
SELECT agent_identity, target FROM memory_operations
WHERE id = %(id)s::bigint AND (%(theme)s::text IS NULL OR agent_identity = %(theme)s::text);
