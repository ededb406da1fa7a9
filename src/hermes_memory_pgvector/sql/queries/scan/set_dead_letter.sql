-- Gives a rejected record another payload.
UPDATE dead_letters SET payload = %(payload)s WHERE id = %(id)s;
