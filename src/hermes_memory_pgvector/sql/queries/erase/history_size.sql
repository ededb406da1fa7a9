-- How many operations a history has, and where its last one stands.
SELECT count(*) OVER (), order_us, writer, seq, part FROM memory_operations
WHERE agent_identity = %(theme)s AND target = %(target)s
ORDER BY order_us DESC, writer DESC, seq DESC, part DESC LIMIT 1;
