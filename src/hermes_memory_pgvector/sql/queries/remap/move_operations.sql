-- Gives the operations of a theme and target another theme, by their keys.
UPDATE memory_operations AS operation SET agent_identity = %(other)s
FROM unnest(%(orders)s::bigint[], %(writers)s::text[], %(seqs)s::bigint[], %(parts)s::integer[])
     AS moved (order_us, writer, seq, part)
WHERE operation.agent_identity = %(theme)s AND operation.target = %(target)s
  AND operation.order_us = moved.order_us AND operation.writer = moved.writer AND operation.seq = moved.seq
  AND operation.part = moved.part;
