-- One receipt.
SELECT id, forgotten_at, actor, home_id, named, finished_at, counts, unreached, digest
FROM erasure_receipts WHERE id = %(id)s;
