-- How many delegations are left of themes, sessions and tasks that a receipt says are forgotten?
SELECT count(*) FROM delegations AS edge, (SELECT coalesce(receipt.key, own.key) AS key FROM erasure_receipts AS receipt, erasure_key AS own
      WHERE receipt.id = %(receipt)s) AS one
WHERE EXISTS (
    SELECT FROM tombstones AS known
    WHERE known.receipt_id = %(receipt)s AND edge.ts <= known.forgotten_at
      AND known.hash IN (
          hermes_tombstone(one.key, ARRAY['scope', '', '']),
          hermes_tombstone(one.key, ARRAY['scope', edge.agent_identity, '']),
          hermes_tombstone(one.key, ARRAY['scope', '', edge.session_id]),
          hermes_tombstone(one.key, ARRAY['scope', edge.agent_identity, edge.session_id]),
          hermes_tombstone(one.key, ARRAY['task', edge.agent_identity, edge.session_id, encode(edge.task_digest, 'hex')])));
