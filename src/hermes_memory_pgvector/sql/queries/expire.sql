-- count --
-- How many turns of each theme are older than it keeps them, and how many more will be by then; the options are those of
-- expire/turns, with `soon`: an interval in days. Counted up to a bound for each theme.
WITH rule AS MATERIALIZED (
    SELECT known.theme,
           CASE WHEN known.theme = ANY (%(themes)s::text[])
                THEN (SELECT own.cut FROM unnest(%(themes)s::text[], %(cuts)s::timestamptz[]) AS own (theme, cut)
                      WHERE own.theme = known.theme)
                ELSE %(cut)s::timestamptz END AS cut
    FROM hermes_theme_names AS known
    WHERE (%(among)s::text[] IS NULL OR known.theme = ANY (%(among)s::text[]))
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


-- is_only_home --
-- Whether nobody but these homes has ever written to this database.
SELECT NOT EXISTS (SELECT FROM journal_writers WHERE home_id <> '' AND home_id <> ALL (%(homes)s::text[]));


-- lock --
-- Whether nobody else is sweeping; until the transaction ends, nobody else does.
SELECT pg_try_advisory_xact_lock(hashtextextended('hermes-sweep', 7));


-- memories --
-- Entries that nobody has changed, or added once more, since a time.
--
-- cut: that time. among: only these themes; null for all. holder: leave out what another home than this one holds; null does not.
SELECT entry.agent_identity, entry.target, entry.id, entry.content
FROM memory_entries AS entry
WHERE entry.updated_at < %(cut)s::timestamptz
  AND NOT EXISTS (SELECT FROM memory_operations AS operation
                  WHERE operation.agent_identity = entry.agent_identity AND operation.target = entry.target
                    AND operation.content = entry.content AND operation.at >= %(cut)s::timestamptz)
  AND (%(among)s::text[] IS NULL OR entry.agent_identity = ANY (%(among)s::text[]))
  AND (%(holder)s::text IS NULL
       OR entry.homes - %(holder)s::text = '{}'::jsonb)
ORDER BY entry.agent_identity, entry.target, entry.id;


-- turns --
-- Turns that are older than their theme keeps them, the oldest of each theme first; never more than `limit`.
--
-- themes, cuts: themes with a rule of their own, and the time before which their turns go; null keeps them. cut: the time for
-- all other themes; null keeps them. among: only these; null for all. homes: only turns that these wrote, and those of no
-- known home in the themes `homeless`; null for all.
WITH rule AS MATERIALIZED (
    SELECT known.theme,
           CASE WHEN known.theme = ANY (%(themes)s::text[])
                THEN (SELECT own.cut FROM unnest(%(themes)s::text[], %(cuts)s::timestamptz[]) AS own (theme, cut)
                      WHERE own.theme = known.theme)
                ELSE %(cut)s::timestamptz END AS cut
    FROM hermes_theme_names AS known
    WHERE (%(among)s::text[] IS NULL OR known.theme = ANY (%(among)s::text[]))
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
