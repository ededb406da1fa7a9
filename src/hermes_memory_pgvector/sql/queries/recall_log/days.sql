-- How often recall was asked on each day from a time on, how often it had to do without something, and how long it took.
--
-- theme: null for all. The log keeps the last answers of each theme, so these are the least there were.
SELECT (at AT TIME ZONE 'UTC')::date, count(*), count(degraded),
       percentile_cont(0.5) WITHIN GROUP (ORDER BY milliseconds),
       percentile_cont(0.95) WITHIN GROUP (ORDER BY milliseconds)
FROM recall_log
WHERE at >= %(since)s::timestamptz AND (%(theme)s::text IS NULL OR agent_identity = %(theme)s::text)
GROUP BY 1 ORDER BY 1;
