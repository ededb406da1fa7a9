-- Which themes hold the most rows, and how many rows and themes are there in all?
SELECT theme, sum(memories)::bigint, sum(turns)::bigint, max(newest),
       sum(sum(memories)) OVER ()::bigint, sum(sum(turns)) OVER ()::bigint, count(*) OVER ()
FROM (
    SELECT agent_identity AS theme, count(*) AS memories, 0 AS turns, max(updated_at) AS newest
    FROM memory_entries GROUP BY 1
    UNION ALL
    SELECT agent_identity, 0, count(*), max(ts) FROM conversations GROUP BY 1
) AS counted
GROUP BY theme ORDER BY sum(memories) + sum(turns) DESC, theme LIMIT %(limit)s::integer;
