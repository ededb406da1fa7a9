-- Deletes a rejected record.
DELETE FROM dead_letters WHERE id = %(id)s;
