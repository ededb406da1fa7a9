-- The tombstones of a receipt with their times, in order.
SELECT hash, forgotten_at FROM tombstones WHERE receipt_id = %(receipt)s ORDER BY hash;
