-- Every operation on a theme's memories of one target, in order.
SELECT agent_identity, id, target, action, content, old_text, previous, home_id, origin, at, metadata, writer, trust, order_us
FROM memory_operations
WHERE agent_identity = %(theme)s AND target = %(target)s
ORDER BY order_us, memory_operations.writer, seq, part;
