-- Adds up the lines that count a theme's rows: one for each of the last seven days, one for all that lies before.
WITH turn AS MATERIALIZED (
    SELECT pg_try_advisory_xact_lock(hashtextextended('hermes-growth', 7)) AS is_ours
), many AS MATERIALIZED (
    SELECT agent_identity, CASE WHEN day > %(today)s::date - 7 THEN day ELSE '-infinity' END AS day,
           array_agg(id) AS ids, sum(memories) AS memories, sum(turns) AS turns, max(last_write) AS last_write
    FROM theme_growth WHERE (SELECT is_ours FROM turn)
    GROUP BY 1, 2 HAVING count(*) > 1
), gone AS (
    DELETE FROM theme_growth AS line USING many
    WHERE line.agent_identity = many.agent_identity AND line.id = ANY (many.ids)
)
INSERT INTO theme_growth (agent_identity, day, memories, turns, last_write)
SELECT agent_identity, day, memories, turns, last_write FROM many;
