-- Records that wait for a theme, in the order in which they came, locked against whoever erases.
SELECT id, writer, seq, payload, waits_for FROM dead_letters
WHERE waits_for IS NOT NULL AND id = ANY (%(ids)s::bigint[]) ORDER BY id FOR UPDATE;
