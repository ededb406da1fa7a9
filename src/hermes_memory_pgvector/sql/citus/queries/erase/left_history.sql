-- How many operations on memories still say what a receipt says is forgotten?
WITH one AS MATERIALIZED (
    SELECT coalesce(receipt.key, own.key) AS key,
           coalesce((SELECT jsonb_object_agg(named.new, named.olds)
                     FROM (SELECT new, jsonb_agg(old) AS olds FROM theme_aliases GROUP BY new) AS named), '{}') AS aliases
    FROM erasure_receipts AS receipt, erasure_key AS own WHERE receipt.id = %(receipt)s
), stones AS MATERIALIZED (
    SELECT hash, forgotten_at FROM tombstones WHERE receipt_id = %(receipt)s
)
SELECT count(*) FROM memory_operations AS operation, one
WHERE EXISTS (
    SELECT FROM stones AS known
    WHERE operation.at <= known.forgotten_at AND known.hash = ANY (hermes_hashes_of_memory(
        one.key, one.aliases, operation.agent_identity, operation.target,
        ARRAY[operation.content, operation.previous, operation.old_text], operation.metadata ->> 'session_id',
        operation.action <> 'remove')));
