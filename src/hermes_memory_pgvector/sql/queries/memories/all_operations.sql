-- Every operation on this theme's memories, in order.
SELECT order_us, writer, seq, part, action, content, old_text, previous, home_id, origin, at, metadata, written_by, trust
FROM memory_operations
WHERE agent_identity = %(theme)s AND target = %(target)s
ORDER BY order_us, writer, seq, part;
