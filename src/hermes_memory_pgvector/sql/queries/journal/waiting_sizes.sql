-- The next records that wait for a theme, in the order in which they came: number and size.
SELECT id, octet_length(payload) FROM dead_letters
WHERE waits_for IS NOT NULL AND id > %(after)s::bigint ORDER BY id LIMIT %(limit)s::integer;
