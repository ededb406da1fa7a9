-- The number of the newest receipt, 0 when nothing was ever forgotten.
SELECT coalesce(max(id), 0) FROM erasure_receipts;
