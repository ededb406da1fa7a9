-- Gives a rejected record a payload without what was forgotten.
UPDATE dead_letters SET payload = %(payload)s WHERE id = %(id)s;
