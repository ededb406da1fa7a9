-- Brings tombstones here.
INSERT INTO tombstones (hash, receipt_id, forgotten_at)
SELECT given.hash, given.receipt_id, given.forgotten_at
FROM unnest(%(hashes)s::bytea[], %(receipts)s::bigint[], %(at)s::timestamptz[]) AS given (hash, receipt_id, forgotten_at)
ON CONFLICT (hash, receipt_id) DO NOTHING;
