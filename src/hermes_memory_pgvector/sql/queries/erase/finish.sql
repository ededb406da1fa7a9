-- Ends a receipt, once.
UPDATE erasure_receipts
SET finished_at = clock_timestamp(), counts = %(counts)s::jsonb, unreached = %(unreached)s::text[], digest = %(digest)s
WHERE id = %(id)s AND finished_at IS NULL;
