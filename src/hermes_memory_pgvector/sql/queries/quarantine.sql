-- among --
-- Which of these turns and memories of a theme some quarantine holds: whether it is a turn, and its id.
SELECT DISTINCT true, held.id FROM quarantined_turns AS held
WHERE held.agent_identity = %(theme)s::text AND held.id = ANY (%(turn_ids)s::bigint[])
UNION ALL
SELECT DISTINCT false, held.id FROM quarantined_memories AS held
WHERE held.agent_identity = %(theme)s::text AND held.id = ANY (%(memory_ids)s::bigint[]);


-- begin --
-- Makes a quarantine; answers its number. The time is now unless it is known from elsewhere.
INSERT INTO quarantines (actor, home_id, theme, session_id, origin, since, until, is_rule, at)
VALUES (%(actor)s, %(home_id)s, %(theme)s, %(session_id)s, %(origin)s, %(since)s::timestamptz, %(until)s::timestamptz,
        %(is_rule)s, coalesce(%(at)s::timestamptz, clock_timestamp()))
RETURNING id, at;


-- brought --
-- The quarantine that an import made for what was quarantined elsewhere since a time.
SELECT id FROM quarantines WHERE NOT is_rule AND actor = %(actor)s AND at = %(at)s::timestamptz AND undone_at IS NULL ORDER BY id LIMIT 1;


-- count_memories --
-- How many memories of each theme a rule is about, how many of those are in a quarantine already, and in how many cases a
-- home has the entry in its file.
--
-- theme, session_id, origin, since, until: null for no such limit.
SELECT entry.agent_identity, count(*), count(*) FILTER (WHERE EXISTS (
           SELECT FROM quarantined_memories AS held WHERE held.agent_identity = entry.agent_identity AND held.id = entry.id)),
       count(*) FILTER (WHERE EXISTS (
           SELECT FROM memory_sources AS source WHERE source.agent_identity = entry.agent_identity AND source.entry_id = entry.id))
FROM memory_entries AS entry
WHERE (%(theme)s::text IS NULL OR entry.agent_identity = %(theme)s::text)
  AND (%(session_id)s::text IS NULL OR entry.metadata ->> 'session_id' = %(session_id)s::text)
  AND (%(origin)s::text IS NULL OR hermes_is_from(
           hermes_origin_of_memory(entry.origin, entry.metadata), entry.trust, entry.metadata, %(origin)s::text))
  AND (%(since)s::timestamptz IS NULL OR entry.updated_at >= %(since)s::timestamptz)
  AND (%(until)s::timestamptz IS NULL OR entry.updated_at < %(until)s::timestamptz)
GROUP BY entry.agent_identity ORDER BY count(*) DESC, entry.agent_identity;


-- count_turns --
-- How many turns of each theme a rule is about, and how many of those are in a quarantine already.
--
-- theme, session_id, origin, since, until: null for no such limit.
SELECT turn.agent_identity, count(*), count(*) FILTER (WHERE EXISTS (
           SELECT FROM quarantined_turns AS held WHERE held.agent_identity = turn.agent_identity AND held.id = turn.id))
FROM conversations AS turn
WHERE (%(theme)s::text IS NULL OR turn.agent_identity = %(theme)s::text)
  AND (%(session_id)s::text IS NULL OR turn.session_id = %(session_id)s::text)
  AND (%(origin)s::text IS NULL OR hermes_is_from(
           hermes_origin_of_turn(turn.origin, turn.role), turn.trust, turn.metadata, %(origin)s::text))
  AND (%(since)s::timestamptz IS NULL OR turn.ts >= %(since)s::timestamptz)
  AND (%(until)s::timestamptz IS NULL OR turn.ts < %(until)s::timestamptz)
GROUP BY turn.agent_identity ORDER BY count(*) DESC, turn.agent_identity;


-- held_memories --
-- Memories of a theme that a quarantine holds, the last changed first, before a place in time.
--
-- theme; id: the quarantine; before, before_id: null for open, the place itself is not included; limit.
SELECT entry.agent_identity, entry.id, entry.updated_at, entry.target, entry.content, entry.muted_at,
       hermes_origin_of_memory(entry.origin, entry.metadata), entry.trust
FROM quarantined_memories AS held
JOIN memory_entries AS entry ON entry.agent_identity = held.agent_identity AND entry.id = held.id
WHERE held.agent_identity = %(theme)s::text AND held.quarantine_id = %(id)s::bigint
  AND (%(before)s::timestamptz IS NULL OR (entry.updated_at, entry.id) < (%(before)s::timestamptz, %(before_id)s::bigint))
ORDER BY entry.updated_at DESC, entry.id DESC LIMIT %(limit)s::integer;


-- held_turns --
-- Turns of a theme that a quarantine holds, the newest first, before a place in time.
--
-- theme; id: the quarantine; before, before_id: null for open, the place itself is not included; limit.
SELECT turn.agent_identity, turn.id, turn.ts, turn.session_id, turn.role, turn.content, turn.muted_at,
       hermes_origin_of_turn(turn.origin, turn.role), turn.trust
FROM quarantined_turns AS held
JOIN conversations AS turn ON turn.agent_identity = held.agent_identity AND turn.id = held.id
WHERE held.agent_identity = %(theme)s::text AND held.quarantine_id = %(id)s::bigint
  AND (%(before)s::timestamptz IS NULL OR (turn.ts, turn.id) < (%(before)s::timestamptz, %(before_id)s::bigint))
ORDER BY turn.ts DESC, turn.id DESC LIMIT %(limit)s::integer;


-- hold_brought_memories --
-- Takes memories out of recall that an export says are; arrays of equal length.
INSERT INTO quarantined_memories (agent_identity, id, quarantine_id)
SELECT entry.agent_identity, entry.id, given.quarantine_id
FROM unnest(%(themes)s::text[], %(ids)s::bigint[], %(quarantine_ids)s::bigint[]) AS given (theme, id, quarantine_id)
JOIN memory_entries AS entry ON entry.agent_identity = given.theme AND entry.id = given.id
WHERE NOT EXISTS (
    SELECT FROM quarantined_memories AS held WHERE held.agent_identity = entry.agent_identity AND held.id = entry.id)
ON CONFLICT DO NOTHING;


-- hold_brought_turns --
-- Takes turns out of recall that an export says are; arrays of equal length.
INSERT INTO quarantined_turns (agent_identity, id, quarantine_id)
SELECT turn.agent_identity, turn.id, given.quarantine_id
FROM unnest(%(themes)s::text[], %(session_ids)s::text[], %(digests)s::text[], %(ordinals)s::integer[],
            %(quarantine_ids)s::bigint[]) AS given (theme, session_id, digest, ordinal, quarantine_id)
JOIN conversations AS turn ON turn.agent_identity = given.theme AND turn.session_id = given.session_id
 AND turn.digest = decode(given.digest, 'hex') AND turn.ordinal = given.ordinal
WHERE NOT EXISTS (SELECT FROM quarantined_turns AS held WHERE held.agent_identity = turn.agent_identity AND held.id = turn.id)
ON CONFLICT DO NOTHING;


-- hold_memories --
-- Takes every memory that a rule is about out of recall.
INSERT INTO quarantined_memories (agent_identity, id, quarantine_id)
SELECT entry.agent_identity, entry.id, %(id)s::bigint
FROM memory_entries AS entry
WHERE (%(theme)s::text IS NULL OR entry.agent_identity = %(theme)s::text)
  AND (%(session_id)s::text IS NULL OR entry.metadata ->> 'session_id' = %(session_id)s::text)
  AND (%(origin)s::text IS NULL OR hermes_is_from(
           hermes_origin_of_memory(entry.origin, entry.metadata), entry.trust, entry.metadata, %(origin)s::text))
  AND (%(since)s::timestamptz IS NULL OR entry.updated_at >= %(since)s::timestamptz)
  AND (%(until)s::timestamptz IS NULL OR entry.updated_at < %(until)s::timestamptz)
ON CONFLICT DO NOTHING;


-- hold_turns --
-- Takes every turn that a rule is about out of recall.
INSERT INTO quarantined_turns (agent_identity, id, quarantine_id)
SELECT turn.agent_identity, turn.id, %(id)s::bigint
FROM conversations AS turn
WHERE (%(theme)s::text IS NULL OR turn.agent_identity = %(theme)s::text)
  AND (%(session_id)s::text IS NULL OR turn.session_id = %(session_id)s::text)
  AND (%(origin)s::text IS NULL OR hermes_is_from(
           hermes_origin_of_turn(turn.origin, turn.role), turn.trust, turn.metadata, %(origin)s::text))
  AND (%(since)s::timestamptz IS NULL OR turn.ts >= %(since)s::timestamptz)
  AND (%(until)s::timestamptz IS NULL OR turn.ts < %(until)s::timestamptz)
ON CONFLICT DO NOTHING;


-- in_theme --
-- How many turns and memories of a theme each quarantine holds.
SELECT held.quarantine_id, count(*) FILTER (WHERE held.is_turn), count(*) FILTER (WHERE NOT held.is_turn)
FROM (SELECT quarantine_id, true AS is_turn FROM quarantined_turns WHERE agent_identity = %(theme)s::text
      UNION ALL
      SELECT quarantine_id, false FROM quarantined_memories WHERE agent_identity = %(theme)s::text) AS held
GROUP BY held.quarantine_id;


-- list --
-- Quarantines, the newest first, each with what is in it; id: only this one, null for all.
SELECT made.id, made.at, made.actor, made.theme, made.session_id, made.origin, made.since, made.until, made.is_rule,
       made.undone_at,
       (SELECT count(*) FROM quarantined_turns AS held WHERE held.quarantine_id = made.id),
       (SELECT count(*) FROM quarantined_memories AS held WHERE held.quarantine_id = made.id)
FROM quarantines AS made
WHERE %(id)s::bigint IS NULL OR made.id = %(id)s::bigint
ORDER BY made.id DESC LIMIT %(limit)s::integer;


-- of_memory --
-- The quarantines a memory is in.
SELECT quarantine_id FROM quarantined_memories WHERE agent_identity = %(theme)s AND id = %(id)s::bigint ORDER BY 1;


-- of_turn --
-- The quarantines a turn is in.
SELECT quarantine_id FROM quarantined_turns WHERE agent_identity = %(theme)s AND id = %(id)s::bigint ORDER BY 1;


-- release_memories --
-- Lets searches find the memories of a quarantine again, unless another one holds them.
DELETE FROM quarantined_memories WHERE quarantine_id = %(id)s::bigint;


-- release_turns --
-- Lets searches find the turns of a quarantine again, unless another one holds them.
DELETE FROM quarantined_turns WHERE quarantine_id = %(id)s::bigint;


-- sample_memories --
-- Some memories that a rule is about, the last changed first.
SELECT entry.agent_identity, entry.id, entry.updated_at, entry.target, left(entry.content, 2000), entry.muted_at,
       hermes_origin_of_memory(entry.origin, entry.metadata), entry.trust
FROM memory_entries AS entry
WHERE (%(theme)s::text IS NULL OR entry.agent_identity = %(theme)s::text)
  AND (%(session_id)s::text IS NULL OR entry.metadata ->> 'session_id' = %(session_id)s::text)
  AND (%(origin)s::text IS NULL OR hermes_is_from(
           hermes_origin_of_memory(entry.origin, entry.metadata), entry.trust, entry.metadata, %(origin)s::text))
  AND (%(since)s::timestamptz IS NULL OR entry.updated_at >= %(since)s::timestamptz)
  AND (%(until)s::timestamptz IS NULL OR entry.updated_at < %(until)s::timestamptz)
ORDER BY entry.updated_at DESC, entry.id DESC LIMIT %(limit)s::integer;


-- sample_turns --
-- Some turns that a rule is about, the newest first.
SELECT turn.agent_identity, turn.id, turn.ts, turn.session_id, turn.role, left(turn.content, 2000), turn.muted_at,
       hermes_origin_of_turn(turn.origin, turn.role), turn.trust
FROM conversations AS turn
WHERE (%(theme)s::text IS NULL OR turn.agent_identity = %(theme)s::text)
  AND (%(session_id)s::text IS NULL OR turn.session_id = %(session_id)s::text)
  AND (%(origin)s::text IS NULL OR hermes_is_from(
           hermes_origin_of_turn(turn.origin, turn.role), turn.trust, turn.metadata, %(origin)s::text))
  AND (%(since)s::timestamptz IS NULL OR turn.ts >= %(since)s::timestamptz)
  AND (%(until)s::timestamptz IS NULL OR turn.ts < %(until)s::timestamptz)
ORDER BY turn.ts DESC, turn.id DESC LIMIT %(limit)s::integer;


-- totals --
-- How many turns and memories are in a quarantine.
SELECT (SELECT count(DISTINCT (agent_identity, id)) FROM quarantined_turns),
       (SELECT count(DISTINCT (agent_identity, id)) FROM quarantined_memories);


-- undo --
-- A quarantine is over: rows that arrive from now on are not held.
UPDATE quarantines SET undone_at = clock_timestamp() WHERE id = %(id)s::bigint AND undone_at IS NULL;
