-- The newest receipt of a request that was begun and not finished: its number, time, horizon and counts so far.
SELECT id, forgotten_at, horizon, counts FROM erasure_receipts
WHERE request = %(request)s AND finished_at IS NULL ORDER BY id DESC LIMIT 1;
