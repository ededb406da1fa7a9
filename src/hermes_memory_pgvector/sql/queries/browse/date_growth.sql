-- Counts the rows of a theme on the days of which they tell, for a demonstration of past weeks.
WITH gone AS (
    DELETE FROM theme_growth AS line WHERE line.agent_identity = %(theme)s AND line.id > 0
)
INSERT INTO theme_growth (agent_identity, day, memories, turns, last_write)
SELECT %(theme)s, (told.at AT TIME ZONE 'UTC')::date, sum(told.memories), sum(told.turns), max(told.at)
FROM (
    SELECT entry.updated_at AS at, 1 AS memories, 0 AS turns FROM memory_entries AS entry
    WHERE entry.agent_identity = %(theme)s
    UNION ALL
    SELECT turn.ts, 0, 1 FROM conversations AS turn WHERE turn.agent_identity = %(theme)s
) AS told
GROUP BY 2;
