-- The tombstones of a receipt with their times, and the length of those that are parts of texts, in order.
SELECT hash, max(forgotten_at), max(part_length) FROM tombstones WHERE receipt_id = %(receipt)s GROUP BY hash ORDER BY hash;
