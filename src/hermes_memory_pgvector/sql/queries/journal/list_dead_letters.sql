-- Which records were rejected, newest first?
SELECT id, writer, seq, octet_length(payload), reason, at FROM dead_letters
ORDER BY id DESC LIMIT %(limit)s::integer;
