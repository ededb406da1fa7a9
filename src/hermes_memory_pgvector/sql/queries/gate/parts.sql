-- The forgotten texts that are looked for as parts of others: key, length, hash, and until when each is forgotten.
SELECT coalesce(receipt.key, own.key), part.part_length::integer, part.hash, part.forgotten_at
FROM tombstones AS part JOIN erasure_receipts AS receipt ON receipt.id = part.receipt_id, erasure_key AS own
WHERE part.part_length IS NOT NULL AND part.forgotten_at >= %(since)s::timestamptz;
