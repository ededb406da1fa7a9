-- How many rows each theme has, how many came in the last day and week, and when it was last written to and asked.
--
-- theme: one theme, or null for all; today: the day that ends the week.
SELECT grown.agent_identity, grown.memories, grown.turns, grown.new_today, grown.new_this_week, grown.last_write, asked.at,
       hermes_is_private(grown.agent_identity)
FROM (
    SELECT agent_identity, sum(memories)::bigint AS memories, sum(turns)::bigint AS turns,
           coalesce(sum(memories + turns) FILTER (WHERE day >= %(today)s::date), 0)::bigint AS new_today,
           coalesce(sum(memories + turns) FILTER (WHERE day > %(today)s::date - 7), 0)::bigint AS new_this_week,
           max(last_write) AS last_write
    FROM theme_growth
    WHERE %(theme)s::text IS NULL OR agent_identity = %(theme)s::text
    GROUP BY agent_identity
) AS grown
LEFT JOIN (
    SELECT log.agent_identity, max(log.at) AS at FROM recall_log AS log
    WHERE %(theme)s::text IS NULL OR log.agent_identity = %(theme)s::text
    GROUP BY log.agent_identity
) AS asked ON asked.agent_identity = grown.agent_identity
WHERE grown.memories > 0 OR grown.turns > 0
ORDER BY grown.memories + grown.turns DESC, grown.agent_identity;
