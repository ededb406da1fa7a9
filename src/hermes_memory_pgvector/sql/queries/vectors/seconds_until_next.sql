-- In how many seconds is the next row due that waits for a vector? Null when none waits, which greatest() would hide.
SELECT CASE WHEN min(due_at) IS NOT NULL THEN greatest(0, extract(epoch FROM min(due_at) - now())) END::double precision
FROM pending_vectors;
