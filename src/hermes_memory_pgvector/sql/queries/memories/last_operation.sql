-- The newest operation on this theme's memories so far.
SELECT order_us, writer, seq, part FROM memory_operations
WHERE agent_identity = %(theme)s AND target = %(target)s
ORDER BY order_us DESC, writer DESC, seq DESC, part DESC LIMIT 1;
