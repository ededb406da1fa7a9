-- What does this refused record hold?
SELECT id, writer, seq, payload, reason, at FROM dead_letters WHERE id = %(id)s;
