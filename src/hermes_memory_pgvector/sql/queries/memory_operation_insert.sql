-- Records a memory operation once; answers whether it was new.
INSERT INTO memory_operations
    (agent_identity, target, order_us, writer, seq, part, action, content, old_text, previous, home_id, origin, at, metadata)
VALUES (%(theme)s, %(target)s, %(order_us)s, %(writer)s, %(seq)s, %(part)s, %(action)s, %(content)s, %(old_text)s,
        %(previous)s, %(home_id)s, %(origin)s, %(at)s::timestamptz, %(metadata)s::jsonb)
ON CONFLICT DO NOTHING
RETURNING 1;
