-- Deletes operations of one theme by their keys.
DELETE FROM memory_operations AS operation
USING unnest(%(orders)s::bigint[], %(writers)s::text[], %(seqs)s::bigint[], %(parts)s::integer[])
      AS gone (order_us, writer, seq, part)
WHERE operation.agent_identity = %(theme)s AND operation.target = %(target)s
  AND operation.order_us = gone.order_us AND operation.writer = gone.writer AND operation.seq = gone.seq
  AND operation.part = gone.part;
