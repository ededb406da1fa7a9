-- Agents were at work: so much more each. A theme that has another name now counts under that one.
WITH given AS (
    SELECT coalesce(renamed.new, work.theme) AS theme, max(work.kind) AS kind, sum(work.sessions) AS sessions,
           sum(work.turns) AS turns, sum(work.memories) AS memories, sum(work.recalls) AS recalls
    FROM unnest(%(themes)s::text[], %(kinds)s::text[], %(sessions)s::bigint[], %(turns)s::bigint[], %(memories)s::bigint[],
                %(recalls)s::bigint[]) AS work (theme, kind, sessions, turns, memories, recalls)
    LEFT JOIN theme_aliases AS renamed ON renamed.old = work.theme
    GROUP BY 1
)
INSERT INTO agents AS known (agent_identity, home_id, host, kind, version, sessions, turns, memories, recalls)
SELECT given.theme, %(home_id)s, %(host)s, given.kind, %(version)s, given.sessions, given.turns, given.memories, given.recalls
FROM given
ORDER BY given.theme
ON CONFLICT (agent_identity, home_id) DO UPDATE SET
    last_seen = excluded.last_seen, host = excluded.host, version = excluded.version,
    kind = CASE WHEN excluded.kind = '' THEN known.kind ELSE excluded.kind END,
    sessions = known.sessions + excluded.sessions, turns = known.turns + excluded.turns,
    memories = known.memories + excluded.memories, recalls = known.recalls + excluded.recalls;
