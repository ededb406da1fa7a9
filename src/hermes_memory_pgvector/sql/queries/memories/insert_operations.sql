-- Records memory operations of one theme once; answers which of them were new.
INSERT INTO memory_operations
    (agent_identity, target, order_us, writer, seq, part, action, content, old_text, previous, home_id, origin, at, metadata,
     written_by, trust)
SELECT %(theme)s, %(target)s, given.order_us, given.writer, given.seq, given.part, given.action, given.content, given.old_text,
       given.previous, given.home_id, given.origin, given.at, given.metadata::jsonb, given.written_by, given.trust
FROM unnest(%(orders)s::bigint[], %(writers)s::text[], %(seqs)s::bigint[], %(parts)s::integer[], %(actions)s::text[],
            %(contents)s::text[], %(old_texts)s::text[], %(previous)s::text[], %(home_ids)s::text[], %(origins)s::text[],
            %(ats)s::timestamptz[], %(metadata)s::text[], %(written_by)s::text[], %(trusts)s::text[])
     AS given (order_us, writer, seq, part, action, content, old_text, previous, home_id, origin, at, metadata,
               written_by, trust)
ON CONFLICT DO NOTHING
RETURNING writer, seq, part;
