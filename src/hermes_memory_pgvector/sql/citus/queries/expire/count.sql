-- How many turns of each theme are older than its rule, how many will be soon, and when was the oldest of them said?
SELECT due.theme, count(*) FILTER (WHERE due.ts < due.cut), count(*) FILTER (WHERE due.ts >= due.cut), min(due.ts)
FROM (
    SELECT turn.agent_identity AS theme, turn.ts, CASE WHEN own.theme IS NULL THEN %(cut)s::timestamptz ELSE own.cut END AS cut
    FROM conversations AS turn
    LEFT JOIN unnest(%(themes)s::text[], %(cuts)s::timestamptz[]) AS own (theme, cut) ON own.theme = turn.agent_identity
    WHERE (%(among)s::text[] IS NULL OR turn.agent_identity = ANY (%(among)s::text[]))
      AND (%(homes)s::text[] IS NULL OR turn.home_id = ANY (%(homes)s::text[])
           OR turn.home_id IS NULL AND (%(homeless)s::text[] IS NULL OR turn.agent_identity = ANY (%(homeless)s::text[])))
) AS due
WHERE due.ts < due.cut + make_interval(days => %(soon)s::integer)
GROUP BY due.theme ORDER BY 2 DESC, 1;
