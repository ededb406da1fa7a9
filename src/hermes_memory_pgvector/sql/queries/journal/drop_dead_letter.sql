-- Deletes a rejected record; one that waits for a theme is not for an operator to drop.
DELETE FROM dead_letters WHERE id = %(id)s;
