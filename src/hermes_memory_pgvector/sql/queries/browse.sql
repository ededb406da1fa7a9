-- delegations --
-- The subagents that worked for a session, and the sessions it worked for.
SELECT edge.session_id, edge.child_session_id, edge.ts FROM delegations AS edge
WHERE edge.agent_identity = %(theme)s AND (edge.session_id = %(session_id)s OR edge.child_session_id = %(session_id)s)
ORDER BY edge.ts, edge.id;


-- find_memory --
-- The memory with this id, whichever theme it belongs to, with the homes that hold it.
--
-- theme: null to look into all; id.
SELECT entry.agent_identity, entry.id, entry.target, entry.content, entry.created_at, entry.updated_at, entry.metadata,
       entry.muted_at, pending.attempts, hermes_origin_of_memory(entry.origin, entry.metadata), entry.trust, entry.home_id,
       coalesce((SELECT jsonb_object_agg(source.home_id, source.origin) FROM memory_sources AS source
                 WHERE source.agent_identity = entry.agent_identity AND source.entry_id = entry.id), '{}'::jsonb)
FROM (SELECT DISTINCT agent_identity FROM theme_growth
      WHERE %(theme)s::text IS NULL OR agent_identity = %(theme)s::text) AS theme
JOIN memory_entries AS entry ON entry.agent_identity = theme.agent_identity AND entry.id = %(id)s::bigint
LEFT JOIN pending_vectors AS pending
  ON pending.agent_identity = entry.agent_identity AND pending.kind = 'memory' AND pending.id = entry.id;


-- find_turn --
-- The turn with this id, whichever theme it belongs to.
--
-- theme: null to look into all; id.
SELECT turn.agent_identity, turn.id, turn.session_id, turn.role, turn.content, turn.ts, turn.metadata, turn.muted_at,
       turn.parent_session_id, pending.attempts, hermes_origin_of_turn(turn.origin, turn.role), turn.trust, turn.home_id
FROM (SELECT DISTINCT agent_identity FROM theme_growth
      WHERE %(theme)s::text IS NULL OR agent_identity = %(theme)s::text) AS theme
JOIN conversations AS turn ON turn.agent_identity = theme.agent_identity AND turn.id = %(id)s::bigint
LEFT JOIN pending_vectors AS pending
  ON pending.agent_identity = turn.agent_identity AND pending.kind = 'turn' AND pending.id = turn.id;


-- growth --
-- How many rows came to all themes together, less those that went, on each day after one.
SELECT day, sum(memories)::bigint, sum(turns)::bigint FROM theme_growth WHERE day > %(after)s::date GROUP BY day;


-- growth_of_themes --
-- How many rows came to each of these themes, less those that went, on each day after one.
--
-- themes; after: a day.
SELECT agent_identity, day, sum(memories)::bigint, sum(turns)::bigint
FROM theme_growth
WHERE agent_identity = ANY (%(themes)s::text[]) AND day > %(after)s::date
GROUP BY agent_identity, day;


-- last_line --
-- The highest number of a line that counts rows.
SELECT coalesce(max(id), 0) FROM theme_growth;


-- last_numbers --
-- The highest number of a line that counts rows, of a turn in those themes, and of an operation on memories.
SELECT coalesce((SELECT max(id) FROM theme_growth), 0), coalesce((SELECT max(id) FROM memory_operations), 0),
       coalesce((SELECT max(last.id) FROM (SELECT DISTINCT agent_identity FROM theme_growth) AS theme
                 CROSS JOIN LATERAL (SELECT turn.id FROM conversations AS turn
                                     WHERE turn.agent_identity = theme.agent_identity ORDER BY turn.id DESC LIMIT 1) AS last), 0);


-- memories --
-- Memories of one theme or of all, last changed first, before a place in time.
--
-- theme, origin: null for all; since, before, before_id: null for open, the place itself is not included; limit. Only the themes
-- whose newest rows are the newest of all can hold one of them, so no more than `limit` themes are read, and of those
-- nothing that is older than the oldest of these newest rows.
WITH theme AS MATERIALIZED (
    SELECT known.agent_identity, target.name AS target
    FROM (SELECT DISTINCT agent_identity FROM theme_growth
          WHERE %(theme)s::text IS NULL OR agent_identity = %(theme)s::text) AS known
    CROSS JOIN (VALUES ('memory'), ('user')) AS target (name)
), newest AS MATERIALIZED (
    SELECT theme.agent_identity, theme.target, last.updated_at AS at
    FROM theme CROSS JOIN LATERAL (
        SELECT entry.updated_at FROM memory_entries AS entry
        WHERE entry.agent_identity = theme.agent_identity AND entry.target = theme.target
          AND (%(origin)s::text IS NULL OR hermes_is_from(
                   hermes_origin_of_memory(entry.origin, entry.metadata), entry.trust, entry.metadata, %(origin)s::text))
          AND (%(since)s::timestamptz IS NULL OR entry.updated_at >= %(since)s::timestamptz)
          AND (%(before)s::timestamptz IS NULL OR entry.updated_at <= %(before)s::timestamptz
               AND (entry.updated_at, entry.id) < (%(before)s::timestamptz, %(before_id)s::bigint))
        ORDER BY entry.updated_at DESC LIMIT 1
    ) AS last
    ORDER BY last.updated_at DESC FETCH FIRST (%(limit)s::integer) ROWS WITH TIES
), oldest AS MATERIALIZED (
    SELECT CASE WHEN count(*) >= %(limit)s::integer THEN min(newest.at) ELSE '-infinity' END AS at FROM newest
), place AS MATERIALIZED (
    SELECT found.agent_identity, found.id, found.updated_at AS at
    FROM newest CROSS JOIN oldest CROSS JOIN LATERAL (
        SELECT entry.agent_identity, entry.id, entry.updated_at FROM memory_entries AS entry
        WHERE entry.agent_identity = newest.agent_identity AND entry.target = newest.target
          AND entry.updated_at >= oldest.at
          AND (%(origin)s::text IS NULL OR hermes_is_from(
                   hermes_origin_of_memory(entry.origin, entry.metadata), entry.trust, entry.metadata, %(origin)s::text))
          AND (%(since)s::timestamptz IS NULL OR entry.updated_at >= %(since)s::timestamptz)
          AND (%(before)s::timestamptz IS NULL OR entry.updated_at <= %(before)s::timestamptz
               AND (entry.updated_at, entry.id) < (%(before)s::timestamptz, %(before_id)s::bigint))
        ORDER BY entry.updated_at DESC, entry.id DESC LIMIT %(limit)s::integer
    ) AS found
    ORDER BY found.updated_at DESC, found.id DESC LIMIT %(limit)s::integer
)
SELECT entry.agent_identity, entry.id, entry.updated_at, entry.target, entry.content, entry.muted_at,
       hermes_origin_of_memory(entry.origin, entry.metadata), entry.trust
FROM place JOIN memory_entries AS entry ON entry.agent_identity = place.agent_identity AND entry.id = place.id
ORDER BY place.at DESC, place.id DESC;


-- muted --
-- The muted memories and turns of one theme or of all, last muted first.
SELECT 'memory', agent_identity, id, updated_at AS at, target, NULL AS session_id, NULL AS role, content, muted_at,
       hermes_origin_of_memory(origin, metadata), trust
FROM memory_entries
WHERE muted_at IS NOT NULL AND (%(theme)s::text IS NULL OR agent_identity = %(theme)s::text)
UNION ALL
SELECT 'turn', agent_identity, id, ts, NULL, session_id, role, content, muted_at,
       hermes_origin_of_turn(origin, role), trust
FROM conversations
WHERE muted_at IS NOT NULL AND (%(theme)s::text IS NULL OR agent_identity = %(theme)s::text)
ORDER BY muted_at DESC, id DESC, 1 LIMIT %(limit)s::integer OFFSET %(skip)s::integer;


-- places_before --
-- Where the turns before one turn of a session stand, the nearest first.
SELECT turn.ts, turn.id
FROM conversations AS turn
JOIN conversations AS named ON named.session_id = turn.session_id
WHERE turn.agent_identity = %(theme)s AND turn.session_id = %(session_id)s
  AND named.agent_identity = %(theme)s AND named.session_id = %(session_id)s AND named.id = %(turn_id)s::bigint
  AND (turn.ts, turn.id) < (named.ts, named.id)
ORDER BY turn.ts DESC, turn.id DESC LIMIT %(limit)s::integer;


-- session_themes --
-- The themes in which a session has turns or subagents.
SELECT theme.agent_identity
FROM (SELECT DISTINCT agent_identity FROM theme_growth) AS theme
WHERE EXISTS (SELECT FROM conversations AS turn
              WHERE turn.agent_identity = theme.agent_identity AND turn.session_id = %(session_id)s)
   OR EXISTS (SELECT FROM delegations AS edge
              WHERE edge.agent_identity = theme.agent_identity AND edge.session_id = %(session_id)s)
ORDER BY 1;


-- sessions --
-- The sessions of one theme or of all, last used first, before a place in time: turns, first and last, how it began.
--
-- theme: null for all; since, before, before_id: null for open, the place itself is not included; limit; chars. A session
-- stands where its last turn stands. Only the themes whose newest sessions are the newest of all can hold one of them,
-- so no more than `limit` themes are read, and of those nothing that is older than the oldest of these newest ones.
WITH theme AS MATERIALIZED (
    SELECT DISTINCT agent_identity FROM theme_growth
    WHERE %(theme)s::text IS NULL OR agent_identity = %(theme)s::text
), newest AS MATERIALIZED (
    SELECT theme.agent_identity, last.ts AS at
    FROM theme CROSS JOIN LATERAL (
        SELECT turn.ts FROM conversations AS turn
        WHERE turn.agent_identity = theme.agent_identity
          AND (%(since)s::timestamptz IS NULL OR turn.ts >= %(since)s::timestamptz)
          AND (%(before)s::timestamptz IS NULL OR turn.ts <= %(before)s::timestamptz
               AND (turn.ts, turn.id) < (%(before)s::timestamptz, %(before_id)s::bigint))
          AND turn.id = (SELECT later.id FROM conversations AS later
                         WHERE later.agent_identity = turn.agent_identity AND later.session_id = turn.session_id
                         ORDER BY later.ts DESC, later.id DESC LIMIT 1)
        ORDER BY turn.ts DESC LIMIT 1
    ) AS last
    ORDER BY last.ts DESC FETCH FIRST (%(limit)s::integer) ROWS WITH TIES
), oldest AS MATERIALIZED (
    SELECT CASE WHEN count(*) >= %(limit)s::integer THEN min(newest.at) ELSE '-infinity' END AS at FROM newest
), session AS MATERIALIZED (
    SELECT found.agent_identity, found.session_id, found.id, found.ts AS at
    FROM newest CROSS JOIN oldest CROSS JOIN LATERAL (
        SELECT turn.agent_identity, turn.session_id, turn.id, turn.ts FROM conversations AS turn
        WHERE turn.agent_identity = newest.agent_identity
          AND turn.ts >= oldest.at
          AND (%(since)s::timestamptz IS NULL OR turn.ts >= %(since)s::timestamptz)
          AND (%(before)s::timestamptz IS NULL OR turn.ts <= %(before)s::timestamptz
               AND (turn.ts, turn.id) < (%(before)s::timestamptz, %(before_id)s::bigint))
          AND turn.id = (SELECT later.id FROM conversations AS later
                         WHERE later.agent_identity = turn.agent_identity AND later.session_id = turn.session_id
                         ORDER BY later.ts DESC, later.id DESC LIMIT 1)
        ORDER BY turn.ts DESC, turn.id DESC LIMIT %(limit)s::integer
    ) AS found
    ORDER BY found.ts DESC, found.id DESC LIMIT %(limit)s::integer
)
SELECT session.agent_identity, session.session_id, said.turns, said.first, session.at, said.parent,
       (SELECT left(turn.content, %(chars)s::integer) FROM conversations AS turn
        WHERE turn.agent_identity = session.agent_identity AND turn.session_id = session.session_id
        ORDER BY turn.role <> 'user', turn.ts, turn.id LIMIT 1),
       (SELECT count(*) FROM delegations AS edge
        WHERE edge.agent_identity = session.agent_identity AND edge.session_id = session.session_id),
       session.id
FROM session CROSS JOIN LATERAL (
    SELECT count(*) AS turns, min(turn.ts) AS first, max(turn.parent_session_id) AS parent
    FROM conversations AS turn
    WHERE turn.agent_identity = session.agent_identity AND turn.session_id = session.session_id
) AS said
ORDER BY session.at DESC, session.id DESC;


-- tail_turns --
-- Turns that were stored lately: ids above a number, in the themes whose rows were counted since a number.
--
-- theme: null for all; after_line: of theme_growth; after_id.
SELECT turn.agent_identity, turn.id, turn.ts, turn.session_id, turn.role, turn.content, turn.muted_at,
       hermes_origin_of_turn(turn.origin, turn.role), turn.trust
FROM (SELECT DISTINCT agent_identity FROM theme_growth
      WHERE id > %(after_line)s::bigint AND (%(theme)s::text IS NULL OR agent_identity = %(theme)s::text)) AS theme
JOIN conversations AS turn ON turn.agent_identity = theme.agent_identity AND turn.id > %(after_id)s::bigint
ORDER BY turn.id;


-- theme_delegations --
-- The newest delegations of a theme: which session worked for which, and when.
SELECT edge.session_id, edge.child_session_id, edge.ts FROM delegations AS edge
WHERE edge.agent_identity = %(theme)s
ORDER BY edge.ts DESC, edge.id DESC LIMIT %(limit)s::integer;


-- theme_homes --
-- Which homes hold memories of each of these themes?
SELECT DISTINCT agent_identity, home_id FROM memory_sources
WHERE agent_identity = ANY (%(themes)s::text[]) AND home_id NOT IN ('', 'mcp')
ORDER BY 1, 2;


-- theme_names --
-- The themes that hold anything or ever did, by name.
SELECT DISTINCT agent_identity FROM theme_growth ORDER BY agent_identity;


-- themes --
-- How many rows each theme has, how many came in the last day and week, and when it was last written to and asked.
--
-- theme: one theme, or null for all; today: the day that ends the week.
SELECT grown.agent_identity, grown.memories, grown.turns, grown.new_today, grown.new_this_week, grown.last_write, asked.at,
       hermes_is_private(grown.agent_identity)
FROM (
    SELECT agent_identity, sum(memories)::bigint AS memories, sum(turns)::bigint AS turns,
           coalesce(sum(memories + turns) FILTER (WHERE day >= %(today)s::date), 0)::bigint AS new_today,
           coalesce(sum(memories + turns) FILTER (WHERE day > %(today)s::date - 7), 0)::bigint AS new_this_week,
           max(last_write) AS last_write
    FROM theme_growth
    WHERE %(theme)s::text IS NULL OR agent_identity = %(theme)s::text
    GROUP BY agent_identity
) AS grown
LEFT JOIN LATERAL (
    SELECT log.at FROM recall_log AS log WHERE log.agent_identity = grown.agent_identity ORDER BY log.at DESC LIMIT 1
) AS asked ON true
WHERE grown.memories > 0 OR grown.turns > 0
ORDER BY grown.memories + grown.turns DESC, grown.agent_identity;


-- transcript --
-- The turns of a session in order, after a place in time.
SELECT turn.id, turn.ts, turn.role, turn.content, turn.muted_at, turn.parent_session_id, turn.metadata,
       hermes_origin_of_turn(turn.origin, turn.role), turn.trust
FROM conversations AS turn
WHERE turn.agent_identity = %(theme)s AND turn.session_id = %(session_id)s
  AND (%(after)s::timestamptz IS NULL OR (turn.ts, turn.id) > (%(after)s::timestamptz, %(after_id)s::bigint))
ORDER BY turn.ts, turn.id LIMIT %(limit)s::integer;


-- turns --
-- Turns of one theme or of all, newest first, before a place in time.
--
-- theme, origin: null for all; since, before, before_id: null for open, the place itself is not included; limit. Only the themes
-- whose newest rows are the newest of all can hold one of them, so no more than `limit` themes are read, and of those
-- nothing that is older than the oldest of these newest rows.
WITH theme AS MATERIALIZED (
    SELECT DISTINCT agent_identity FROM theme_growth
    WHERE %(theme)s::text IS NULL OR agent_identity = %(theme)s::text
), newest AS MATERIALIZED (
    SELECT theme.agent_identity, last.ts AS at
    FROM theme CROSS JOIN LATERAL (
        SELECT turn.ts FROM conversations AS turn
        WHERE turn.agent_identity = theme.agent_identity
          AND (%(origin)s::text IS NULL OR hermes_is_from(
                   hermes_origin_of_turn(turn.origin, turn.role), turn.trust, turn.metadata, %(origin)s::text))
          AND (%(since)s::timestamptz IS NULL OR turn.ts >= %(since)s::timestamptz)
          AND (%(before)s::timestamptz IS NULL OR turn.ts <= %(before)s::timestamptz
               AND (turn.ts, turn.id) < (%(before)s::timestamptz, %(before_id)s::bigint))
        ORDER BY turn.ts DESC LIMIT 1
    ) AS last
    ORDER BY last.ts DESC FETCH FIRST (%(limit)s::integer) ROWS WITH TIES
), oldest AS MATERIALIZED (
    SELECT CASE WHEN count(*) >= %(limit)s::integer THEN min(newest.at) ELSE '-infinity' END AS at FROM newest
), place AS MATERIALIZED (
    SELECT found.agent_identity, found.id, found.ts AS at
    FROM newest CROSS JOIN oldest CROSS JOIN LATERAL (
        SELECT turn.agent_identity, turn.id, turn.ts FROM conversations AS turn
        WHERE turn.agent_identity = newest.agent_identity
          AND turn.ts >= oldest.at
          AND (%(origin)s::text IS NULL OR hermes_is_from(
                   hermes_origin_of_turn(turn.origin, turn.role), turn.trust, turn.metadata, %(origin)s::text))
          AND (%(since)s::timestamptz IS NULL OR turn.ts >= %(since)s::timestamptz)
          AND (%(before)s::timestamptz IS NULL OR turn.ts <= %(before)s::timestamptz
               AND (turn.ts, turn.id) < (%(before)s::timestamptz, %(before_id)s::bigint))
        ORDER BY turn.ts DESC, turn.id DESC LIMIT %(limit)s::integer
    ) AS found
    ORDER BY found.ts DESC, found.id DESC LIMIT %(limit)s::integer
)
SELECT turn.agent_identity, turn.id, turn.ts, turn.session_id, turn.role, turn.content, turn.muted_at,
       hermes_origin_of_turn(turn.origin, turn.role), turn.trust
FROM place JOIN conversations AS turn ON turn.agent_identity = place.agent_identity AND turn.id = place.id
ORDER BY place.at DESC, place.id DESC;


-- vectors_of_memory --
-- How many vectors of this model a memory has: one for each piece of its text.
SELECT count(*) FROM {memory_vectors} WHERE agent_identity = %(theme)s AND id = %(id)s;


-- vectors_of_turn --
-- How many vectors of this model a turn has: one for each piece of its text.
SELECT count(*) FROM {turn_vectors} WHERE agent_identity = %(theme)s AND id = %(id)s;
