-- delegations --
-- The subagents that worked for a session, and the sessions it worked for.
SELECT turn.session_id, turn.metadata ->> 'delegated_to', turn.ts FROM conversations AS turn
WHERE turn.agent_identity = %(theme)s AND turn.metadata ? 'delegated_to'
  AND (turn.session_id = %(session_id)s OR turn.metadata ->> 'delegated_to' = %(session_id)s)
ORDER BY turn.ts, turn.id;


-- find_memory --
-- The memory with this id, whichever theme it belongs to, with the homes that hold it.
--
-- theme: null to look into all; id.
SELECT entry.agent_identity, entry.id, entry.target, entry.content, entry.created_at, entry.updated_at, entry.metadata,
       entry.hidden_by, pending.attempts, hermes_origin_of_memory(entry.origin, entry.metadata), entry.untrusted, entry.home_id,
       coalesce((SELECT jsonb_object_agg(held.home, held.how -> 'o') FROM jsonb_each(entry.homes) AS held (home, how)), '{}'::jsonb)
FROM (SELECT theme AS agent_identity FROM hermes_theme_names WHERE %(theme)s::text IS NULL OR theme = %(theme)s::text) AS theme
JOIN memory_entries AS entry ON entry.agent_identity = theme.agent_identity AND entry.id = %(id)s::bigint
LEFT JOIN pending_vectors AS pending
  ON pending.agent_identity = entry.agent_identity AND pending.kind = 'memory' AND pending.id = entry.id;


-- find_turn --
-- The turn with this id, whichever theme it belongs to.
--
-- theme: null to look into all; id.
SELECT turn.agent_identity, turn.id, turn.session_id, turn.role, turn.content, turn.ts, turn.metadata, turn.hidden_by,
       turn.parent_session_id, pending.attempts, hermes_origin_of_turn(turn.origin, turn.role), turn.untrusted, turn.home_id
FROM (SELECT theme AS agent_identity FROM hermes_theme_names WHERE %(theme)s::text IS NULL OR theme = %(theme)s::text) AS theme
JOIN conversations AS turn ON turn.agent_identity = theme.agent_identity AND turn.id = %(id)s::bigint
LEFT JOIN pending_vectors AS pending
  ON pending.agent_identity = turn.agent_identity AND pending.kind = 'turn' AND pending.id = turn.id;


-- days --
-- What came on each day from a time on, and how much of it a stranger's text may have shaped. theme: null for all.
SELECT (row.at AT TIME ZONE 'UTC')::date, count(*) FILTER (WHERE row.kind = 'memory'),
       count(*) FILTER (WHERE row.kind = 'turn'),
       count(*) FILTER (WHERE row.untrusted AND row.hidden_by IS NULL),
       count(*) FILTER (WHERE row.hidden_by IS NOT NULL)
FROM hermes_rows AS row
WHERE row.at >= %(since)s::timestamptz AND (%(theme)s::text IS NULL OR row.theme = %(theme)s::text)
GROUP BY 1;


-- last_numbers --
-- The highest number of a turn, and of an operation on memories.
SELECT coalesce(max(found.id), 0), coalesce((SELECT max(id) FROM memory_operations), 0)
FROM (SELECT theme FROM hermes_theme_names) AS known
CROSS JOIN LATERAL (
    SELECT turn.id FROM conversations AS turn WHERE turn.agent_identity = known.theme ORDER BY turn.id DESC LIMIT 1
) AS found;


-- rows --
-- Memories and turns of one theme or of all, newest first, before a place.
--
-- theme, origin: null for all; kinds; since, before, before_kind, before_id: null for open, the place itself is not included.
SELECT found.kind, found.id, found.theme, found.at, found.content, found.whose, found.session_id, found.hidden_by, found.origin,
       found.untrusted, found.home_id
FROM (SELECT theme FROM hermes_theme_names WHERE %(theme)s::text IS NULL OR theme = %(theme)s::text) AS known
CROSS JOIN LATERAL (
    SELECT * FROM hermes_rows AS stored
    WHERE stored.theme = known.theme AND stored.kind = ANY (%(kinds)s::text[])
      AND (%(origin)s::text IS NULL OR hermes_is_from(stored.origin, stored.untrusted, stored.metadata, %(origin)s::text))
      AND (%(since)s::timestamptz IS NULL OR stored.at >= %(since)s::timestamptz)
      AND (%(before)s::timestamptz IS NULL OR stored.at <= %(before)s::timestamptz
           AND (stored.at, stored.kind, stored.id) < (%(before)s::timestamptz, %(before_kind)s::text, %(before_id)s::bigint))
    ORDER BY stored.at DESC, stored.kind DESC, stored.id DESC LIMIT %(limit)s::integer
) AS found
ORDER BY found.at DESC, found.kind DESC, found.id DESC LIMIT %(limit)s::integer;


-- session_themes --
-- The themes in which a session has turns.
SELECT known.theme FROM hermes_theme_names AS known
WHERE EXISTS (SELECT FROM hermes_rows AS stored WHERE stored.theme = known.theme AND stored.session_id = %(session_id)s)
ORDER BY 1;


-- sessions --
-- The sessions of one theme or of all, last used first, before a place.
--
-- theme: null for all; since, before, before_id: null for open, the place itself is not included.
SELECT found.session_id, found.theme, found.turns, found.last_at,
       (SELECT count(*) FROM conversations AS turn
        WHERE turn.agent_identity = found.theme AND turn.session_id = found.session_id AND turn.metadata ? 'delegated_to'),
       found.begins_with, found.first_at, found.parent_session_id, found.last_id
FROM (SELECT theme FROM hermes_theme_names WHERE %(theme)s::text IS NULL OR theme = %(theme)s::text) AS known
CROSS JOIN LATERAL (
    SELECT * FROM hermes_sessions AS session
    WHERE session.theme = known.theme
      AND (%(since)s::timestamptz IS NULL OR session.last_at >= %(since)s::timestamptz)
      AND (%(before)s::timestamptz IS NULL OR session.last_at <= %(before)s::timestamptz
           AND (session.last_at, session.last_id) < (%(before)s::timestamptz, %(before_id)s::bigint))
    ORDER BY session.last_at DESC, session.last_id DESC LIMIT %(limit)s::integer
) AS found
ORDER BY found.last_at DESC, found.last_id DESC LIMIT %(limit)s::integer;


-- tail_turns --
-- Turns that were stored lately: ids above a number, of one theme or of all.
SELECT found.kind, found.id, found.theme, found.at, found.content, found.whose, found.session_id, found.hidden_by, found.origin,
       found.untrusted, found.home_id
FROM (SELECT theme FROM hermes_theme_names WHERE %(theme)s::text IS NULL OR theme = %(theme)s::text) AS known
CROSS JOIN LATERAL (
    SELECT * FROM hermes_rows AS stored
    WHERE stored.theme = known.theme AND stored.kind = 'turn' AND stored.id > %(after_id)s::bigint
) AS found
ORDER BY found.id;


-- theme_names --
-- The themes that hold anything, by name.
SELECT theme FROM hermes_theme_names ORDER BY theme;


-- themes --
-- How many rows each theme has, how many came today and this week, and when it was last written to and asked.
SELECT theme, memories, turns, new_today, new_this_week, last_write, last_recall, is_private, hidden
FROM hermes_themes WHERE %(theme)s::text IS NULL OR theme = %(theme)s::text
ORDER BY memories + turns DESC, theme;


-- transcript --
-- The turns of a session in order, after a place in time.
SELECT turn.agent_identity, turn.id, turn.session_id, turn.role, turn.content, turn.ts, turn.metadata, turn.hidden_by,
       turn.parent_session_id, pending.attempts, hermes_origin_of_turn(turn.origin, turn.role), turn.untrusted, turn.home_id
FROM conversations AS turn
LEFT JOIN pending_vectors AS pending
  ON pending.agent_identity = turn.agent_identity AND pending.kind = 'turn' AND pending.id = turn.id
WHERE turn.agent_identity = %(theme)s AND turn.session_id = %(session_id)s
  AND (%(after)s::timestamptz IS NULL OR (turn.ts, turn.id) > (%(after)s::timestamptz, %(after_id)s::bigint))
ORDER BY turn.ts, turn.id LIMIT %(limit)s::integer;


-- vectors_of_memory --
-- How many vectors of this model a memory has: one for each piece of its text.
SELECT count(*) FROM {memory_vectors} WHERE agent_identity = %(theme)s AND id = %(id)s;


-- vectors_of_turn --
-- How many vectors of this model a turn has: one for each piece of its text.
SELECT count(*) FROM {turn_vectors} WHERE agent_identity = %(theme)s AND id = %(id)s;
