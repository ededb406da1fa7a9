-- The operations of one theme and target that were stored before a request and are dated after it.
SELECT order_us, writer, seq, part FROM memory_operations
WHERE agent_identity = %(theme)s AND target = %(target)s AND at > %(cut)s::timestamptz AND id <= %(horizon)s::bigint;
