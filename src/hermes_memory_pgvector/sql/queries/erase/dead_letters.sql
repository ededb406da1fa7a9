-- Rejected records with what they hold, above a number.
SELECT id, payload FROM dead_letters WHERE id > %(after_id)s ORDER BY id LIMIT %(limit)s::integer;
