-- Brings tombstones here.
INSERT INTO tombstones (hash, receipt_id, forgotten_at, part_length)
SELECT given.hash, given.receipt_id, given.forgotten_at, given.part_length
FROM unnest(%(hashes)s::bytea[], %(receipts)s::bigint[], %(at)s::timestamptz[], %(lengths)s::integer[])
    AS given (hash, receipt_id, forgotten_at, part_length)
ON CONFLICT DO NOTHING;
