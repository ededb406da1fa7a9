-- How many records wait for a theme that cannot be reached?
SELECT count(*) FROM dead_letters WHERE waits_for IS NOT NULL;
