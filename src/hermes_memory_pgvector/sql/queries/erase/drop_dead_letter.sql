-- Deletes a record of which nothing is left, whether it was rejected or waits for a theme.
DELETE FROM dead_letters WHERE id = %(id)s;
