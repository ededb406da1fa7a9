-- Gives a rejected record a payload without what was forgotten, unless it has changed meanwhile.
UPDATE dead_letters SET payload = %(payload)s WHERE id = %(id)s AND payload = %(was)s;
