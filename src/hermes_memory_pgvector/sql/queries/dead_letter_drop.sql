-- Forgets a refused record.
DELETE FROM dead_letters WHERE id = %(id)s;
