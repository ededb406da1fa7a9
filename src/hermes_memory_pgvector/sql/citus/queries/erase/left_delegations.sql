-- How many delegations are left of themes, sessions and tasks that a receipt says are forgotten?
WITH one AS MATERIALIZED (
    SELECT coalesce(receipt.key, own.key) AS key FROM erasure_receipts AS receipt, erasure_key AS own
    WHERE receipt.id = %(receipt)s
), stones AS MATERIALIZED (
    SELECT hash, forgotten_at FROM tombstones WHERE receipt_id = %(receipt)s
)
SELECT count(*) FROM delegations AS edge, one
WHERE EXISTS (
    SELECT FROM stones AS known
    WHERE edge.ts <= known.forgotten_at
      AND known.hash IN (
          hermes_tombstone(one.key, ARRAY['scope', '', '']),
          hermes_tombstone(one.key, ARRAY['scope', edge.agent_identity, '']),
          hermes_tombstone(one.key, ARRAY['scope', '', edge.session_id]),
          hermes_tombstone(one.key, ARRAY['scope', edge.agent_identity, edge.session_id]),
          hermes_tombstone(one.key, ARRAY['task', edge.agent_identity, edge.session_id, encode(edge.task_digest, 'hex')])));
