-- How many operations on memories still say what a receipt says is forgotten?
SELECT count(*) FROM memory_operations AS operation, (SELECT coalesce(receipt.key, own.key) AS key FROM erasure_receipts AS receipt, erasure_key AS own
      WHERE receipt.id = %(receipt)s) AS one
WHERE EXISTS (SELECT FROM tombstones AS known
              WHERE known.receipt_id = %(receipt)s AND operation.at <= known.forgotten_at
                AND known.hash IN (hermes_tombstone(one.key, ARRAY['memory', operation.agent_identity, operation.content]),
                                   hermes_tombstone(one.key, ARRAY['memory', operation.agent_identity, operation.previous]),
                                   hermes_tombstone(one.key, ARRAY['memory', operation.agent_identity, operation.old_text]),
                                   hermes_tombstone(one.key, ARRAY['scope', '', '']),
                                   hermes_tombstone(one.key, ARRAY['scope', operation.agent_identity, ''])));
