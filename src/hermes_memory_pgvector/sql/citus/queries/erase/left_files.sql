-- How many entries of files as last compared does a receipt say are forgotten?
WITH held AS MATERIALIZED (
    SELECT DISTINCT source.home_id, entry.content
    FROM memory_sources AS source
    JOIN memory_entries AS entry ON entry.agent_identity = source.agent_identity AND entry.id = source.entry_id
)
SELECT count(*)
FROM memory_files AS file, jsonb_array_elements_text(file.entries) AS entry,
     (SELECT coalesce(receipt.key, own.key) AS key FROM erasure_receipts AS receipt, erasure_key AS own
      WHERE receipt.id = %(receipt)s) AS one
WHERE EXISTS (SELECT FROM tombstones AS known
              WHERE known.receipt_id = %(receipt)s AND file.compared_at <= known.forgotten_at
                AND known.hash = hermes_tombstone(one.key, ARRAY['entry', entry]))
  AND NOT EXISTS (SELECT FROM held WHERE held.home_id = file.home_id AND held.content = entry);
