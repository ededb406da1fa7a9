-- How many rows came to each of these themes, less those that went, on each day after one.
--
-- themes; after: a day.
SELECT agent_identity, day, sum(memories)::bigint, sum(turns)::bigint
FROM theme_growth
WHERE agent_identity = ANY (%(themes)s::text[]) AND day > %(after)s::date
GROUP BY agent_identity, day;
