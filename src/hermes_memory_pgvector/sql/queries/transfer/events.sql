-- Every memory operation in the order of its making, for an export.
--
-- theme: null for all of them.
SELECT agent_identity, target, order_us, writer, seq, part, action, content, old_text, previous, home_id, origin, at, metadata,
       written_by, trust
FROM memory_operations
WHERE (%(theme)s::text IS NULL OR agent_identity = %(theme)s::text)
ORDER BY agent_identity COLLATE "C", target, order_us, writer COLLATE "C", seq, part;
