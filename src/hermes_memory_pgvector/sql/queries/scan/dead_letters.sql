-- Rejected records with what they hold, above a number.
SELECT id, payload FROM dead_letters WHERE id > %(id_after)s::bigint ORDER BY id LIMIT %(limit)s::integer;
