-- The key of a receipt's tombstones.
SELECT coalesce(receipt.key, own.key) FROM erasure_receipts AS receipt, erasure_key AS own WHERE receipt.id = %(id)s;
