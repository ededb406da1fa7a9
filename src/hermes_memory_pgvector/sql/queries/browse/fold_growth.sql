-- Adds up the lines that count a theme's rows: one for each of the last fourteen days, one for all that lies before.
WITH many AS MATERIALIZED (
    SELECT agent_identity, CASE WHEN day > %(today)s::date - 14 THEN day ELSE '-infinity' END AS day, array_agg(id) AS ids
    FROM theme_growth GROUP BY 1, 2 HAVING count(*) > 1
), gone AS (
    DELETE FROM theme_growth AS line USING many
    WHERE line.agent_identity = many.agent_identity AND line.id = ANY (many.ids)
    RETURNING line.agent_identity, many.day, line.memories, line.turns, line.last_write
)
INSERT INTO theme_growth (agent_identity, day, memories, turns, last_write)
SELECT agent_identity, day, sum(memories), sum(turns), max(last_write) FROM gone GROUP BY 1, 2;
