-- Turns that are older than their theme keeps them, the oldest of each theme first; never more than `limit`.
--
-- themes, cuts: themes with a rule of their own, and the time before which their turns go; null keeps them. cut: the time for
-- all other themes; null keeps them. among: only these; null for all. homes: only turns that these wrote, and those of no
-- known home in the themes `homeless`; null for all.
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
SELECT due.agent_identity, due.id
FROM rule
CROSS JOIN LATERAL (
    SELECT turn.agent_identity, turn.id FROM conversations AS turn
    WHERE turn.agent_identity = rule.theme AND turn.ts < rule.cut
      AND (%(homes)s::text[] IS NULL OR turn.home_id = ANY (%(homes)s::text[])
           OR turn.home_id IS NULL AND (%(homeless)s::text[] IS NULL OR turn.agent_identity = ANY (%(homeless)s::text[])))
    ORDER BY turn.ts LIMIT %(limit)s::integer
) AS due
LIMIT %(limit)s::integer;
