-- How many turns are there that a receipt says are forgotten, by their words or by their theme and session?
WITH one AS MATERIALIZED (
    SELECT coalesce(receipt.key, own.key) AS key,
           coalesce((SELECT jsonb_object_agg(named.new, named.olds)
                     FROM (SELECT new, jsonb_agg(old) AS olds FROM theme_aliases GROUP BY new) AS named), '{}') AS aliases
    FROM erasure_receipts AS receipt, erasure_key AS own WHERE receipt.id = %(receipt)s
), stones AS MATERIALIZED (
    SELECT hash, forgotten_at FROM tombstones WHERE receipt_id = %(receipt)s
)
SELECT count(*) FROM conversations AS turn, one
WHERE EXISTS (
    SELECT FROM stones AS known
    WHERE turn.ts <= known.forgotten_at AND known.hash = ANY (hermes_hashes_of_turn(
        one.key, one.aliases, turn.agent_identity, turn.session_id, turn.role, turn.content, turn.ts, turn.digest, turn.ordinal,
        turn.metadata)));
