-- What does this rejected record hold?
SELECT id, writer, seq, payload, reason, at FROM dead_letters WHERE id = %(id)s;
