-- Moves operations on memories of a target to another theme.
--
-- What answers is not copied to the workers, which row-level security does not allow.
WITH gone AS (
    DELETE FROM memory_operations AS operation
    WHERE operation.agent_identity = %(theme)s AND operation.target = %(target)s
      AND (operation.order_us, operation.writer, operation.seq, operation.part) IN (
          SELECT * FROM unnest(%(orders)s::bigint[], %(writers)s::text[], %(seqs)s::bigint[], %(parts)s::integer[]))
    RETURNING operation.*
)
INSERT INTO memory_operations
    (agent_identity, target, order_us, writer, seq, part, action, content, old_text, previous, home_id, origin, at, metadata, id,
     written_by, trust)
SELECT %(other)s::text, target, order_us, writer, seq, part, action, content, old_text, previous, home_id, origin, at, metadata, id,
       written_by, trust
FROM gone
RETURNING id;
