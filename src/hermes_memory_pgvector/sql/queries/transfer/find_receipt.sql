-- A receipt that was brought here before, or that was made here.
SELECT id FROM erasure_receipts
WHERE forgotten_at = %(at)s AND actor = %(actor)s AND home_id = %(home_id)s AND named = %(named)s::text[]
ORDER BY id LIMIT 1;
