-- How many turns of each theme are older than it keeps them, and how many more will be by then; the options are those of
-- expire/turns, with `soon`: an interval in days. Counted up to a bound for each theme.
WITH RECURSIVE known (theme) AS (
    SELECT min(c.agent_identity) FROM conversations AS c
    UNION ALL
    SELECT (SELECT min(c.agent_identity) FROM conversations AS c WHERE c.agent_identity > known.theme)
    FROM known WHERE known.theme IS NOT NULL
), rule AS MATERIALIZED (
    SELECT known.theme,
           CASE WHEN known.theme = ANY (%(themes)s::text[])
                THEN (SELECT own.cut FROM unnest(%(themes)s::text[], %(cuts)s::timestamptz[]) AS own (theme, cut)
                      WHERE own.theme = known.theme)
                ELSE %(cut)s::timestamptz END AS cut
    FROM known
    WHERE known.theme IS NOT NULL AND (%(among)s::text[] IS NULL OR known.theme = ANY (%(among)s::text[]))
)
SELECT rule.theme, count(*) FILTER (WHERE due.ts < rule.cut), count(*) FILTER (WHERE due.ts >= rule.cut), min(due.ts)
FROM rule
CROSS JOIN LATERAL (
    SELECT turn.ts FROM conversations AS turn
    WHERE turn.agent_identity = rule.theme AND turn.ts < rule.cut + make_interval(days => %(soon)s::integer)
      AND (%(homes)s::text[] IS NULL OR turn.home_id = ANY (%(homes)s::text[])
           OR turn.home_id IS NULL AND (%(homeless)s::text[] IS NULL OR turn.agent_identity = ANY (%(homeless)s::text[])))
    ORDER BY turn.ts LIMIT 1000000
) AS due
GROUP BY rule.theme ORDER BY 2 DESC, 1;
