-- How many rows want a vector, and how many of them are due now? Counted up to a bound.
SELECT count(*), count(*) FILTER (WHERE due_at <= now()) FROM (SELECT due_at FROM pending_vectors LIMIT 100000) AS counted;
