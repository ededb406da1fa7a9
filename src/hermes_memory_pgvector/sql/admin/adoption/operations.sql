-- records each adopted memory as the operation that added it
INSERT INTO memory_operations (agent_identity, target, order_us, writer, seq, part, action, content, at, metadata, written_by)
SELECT agent_identity, target, (extract(epoch FROM created_at) * 1000000)::bigint, 'adopted', id, 0, 'add', content,
       created_at, metadata, origin
FROM memory_entries
