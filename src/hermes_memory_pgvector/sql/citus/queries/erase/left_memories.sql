-- How many entries are there that a receipt says are forgotten, by their words or by their theme and session?
WITH one AS MATERIALIZED (
    SELECT coalesce(receipt.key, own.key) AS key,
           coalesce((SELECT jsonb_object_agg(named.new, named.olds)
                     FROM (SELECT new, jsonb_agg(old) AS olds FROM theme_aliases GROUP BY new) AS named), '{}') AS aliases
    FROM erasure_receipts AS receipt, erasure_key AS own WHERE receipt.id = %(receipt)s
), stones AS MATERIALIZED (
    SELECT hash, forgotten_at FROM tombstones WHERE receipt_id = %(receipt)s
)
SELECT count(*) FROM memory_entries AS entry, one
WHERE EXISTS (
    SELECT FROM stones AS known
    WHERE entry.updated_at <= known.forgotten_at AND known.hash = ANY (hermes_hashes_of_memory(
        one.key, one.aliases, entry.agent_identity, entry.target, ARRAY[entry.content],
        coalesce(entry.metadata ->> 'session_id', ''), true)));
