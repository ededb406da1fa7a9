-- What was forgotten, in the order in which it was: the receipts with their place in that order and their key.
SELECT row_number() OVER (ORDER BY receipt.forgotten_at, receipt.id), receipt.forgotten_at, receipt.actor, receipt.home_id,
       receipt.named, receipt.finished_at, receipt.counts, receipt.unreached, coalesce(receipt.key, own.key)
FROM erasure_receipts AS receipt, erasure_key AS own
ORDER BY receipt.forgotten_at, receipt.id;
