-- How many entries are there that a receipt says are forgotten, by their words or by their theme?
SELECT count(*) FROM memory_entries AS entry, (SELECT coalesce(receipt.key, own.key) AS key FROM erasure_receipts AS receipt, erasure_key AS own
      WHERE receipt.id = %(receipt)s) AS one
WHERE EXISTS (SELECT FROM tombstones AS known
              WHERE known.receipt_id = %(receipt)s AND entry.updated_at <= known.forgotten_at
                AND known.hash IN (hermes_tombstone(one.key, ARRAY['memory', entry.agent_identity, entry.content]),
                                   hermes_tombstone(one.key, ARRAY['scope', '', '']),
                                   hermes_tombstone(one.key, ARRAY['scope', entry.agent_identity, ''])));
