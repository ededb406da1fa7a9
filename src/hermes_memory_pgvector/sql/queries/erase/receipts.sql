-- The receipts, newest first.
SELECT id, forgotten_at, actor, home_id, named, finished_at, counts, unreached, digest
FROM erasure_receipts ORDER BY id DESC LIMIT %(limit)s::integer;
