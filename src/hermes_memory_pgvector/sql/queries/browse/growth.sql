-- How many rows came to all themes together, less those that went, on each day after one.
SELECT day, sum(memories)::bigint, sum(turns)::bigint FROM theme_growth WHERE day > %(after)s::date GROUP BY day;
