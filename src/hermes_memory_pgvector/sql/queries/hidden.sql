-- add --
-- A new rule that hides nothing yet; answers its number. The time is now unless it is known from elsewhere.
INSERT INTO hidden (rule, actor, reason, home_id, theme, session_id, origin, since, until, is_open, at)
VALUES (%(rule)s, %(actor)s, %(reason)s, %(home_id)s, %(theme)s, %(session_id)s, %(origin)s, %(since)s::timestamptz,
        %(until)s::timestamptz, %(is_open)s, coalesce(%(at)s::timestamptz, clock_timestamp()))
RETURNING id;


-- by_rule --
-- Which rows a rule hides.
SELECT stored.kind, stored.theme, stored.id FROM hermes_rows AS stored WHERE stored.hidden_by = %(id)s::bigint;


-- end --
-- A rule is over: rows that arrive from now on are not hidden by it.
UPDATE hidden SET undone_at = %(at)s::timestamptz WHERE id = %(id)s::bigint AND undone_at IS NULL;


-- hide_memories --
-- Hides memories from every search; those that are hidden already stay with their rule.
UPDATE memory_entries AS entry SET hidden_by = %(rule)s::bigint
FROM unnest(%(themes)s::text[], %(ids)s::bigint[]) AS given (theme, id)
WHERE entry.agent_identity = given.theme AND entry.id = given.id AND entry.hidden_by IS NULL
RETURNING entry.agent_identity, entry.id;


-- hide_turns --
-- Hides turns from every search; those that are hidden already stay with their rule.
UPDATE conversations AS turn SET hidden_by = %(rule)s::bigint, before = ''
FROM unnest(%(themes)s::text[], %(ids)s::bigint[]) AS given (theme, id)
WHERE turn.agent_identity = given.theme AND turn.id = given.id AND turn.hidden_by IS NULL
RETURNING turn.agent_identity, turn.id, turn.session_id;


-- imported --
-- The rule that an import made for what was hidden since a time where it comes from.
SELECT id FROM hidden WHERE actor = %(actor)s AND at = %(at)s::timestamptz AND NOT is_open AND undone_at IS NULL ORDER BY id LIMIT 1;


-- in_files --
-- How many of these memories some home has in its file.
SELECT count(*) FROM unnest(%(themes)s::text[], %(ids)s::bigint[]) AS given (theme, id)
JOIN memory_entries AS entry ON entry.agent_identity = given.theme AND entry.id = given.id
WHERE entry.homes - 'mcp' <> '{}'::jsonb;


-- list --
-- The rules in force and the one that is asked for, the newest first, each with what it hides.
--
-- id: only this one; theme: only what it hides there, or is about it alone; before: only numbers below. Null for all.
SELECT DISTINCT ON (rule.id) rule.id, rule.rule, rule.actor, rule.reason, rule.theme, rule.session_id, rule.origin, rule.since, rule.until,
       rule.is_open, rule.at, rule.undone_at, coalesce(held.turns, 0), coalesce(held.memories, 0), held.names, held.content
FROM hidden AS rule
LEFT JOIN (SELECT stored.hidden_by AS id, count(*) FILTER (WHERE stored.kind = 'turn') AS turns,
                  count(*) FILTER (WHERE stored.kind = 'memory') AS memories,
                  (array_agg(left(stored.kind, 1) || stored.id ORDER BY stored.at, stored.id))[:3] AS names,
                  (array_agg(left(stored.content, 2000) ORDER BY stored.at, stored.id))[1] AS content
           FROM hermes_rows AS stored
           WHERE stored.hidden_by IS NOT NULL AND (%(theme)s::text IS NULL OR stored.theme = %(theme)s::text)
           GROUP BY stored.hidden_by) AS held ON held.id = rule.id
WHERE CASE WHEN %(id)s::bigint IS NULL THEN rule.undone_at IS NULL ELSE rule.id = %(id)s::bigint END
  AND (%(theme)s::text IS NULL OR rule.theme = %(theme)s::text OR held.id IS NOT NULL)
  AND (held.id IS NOT NULL OR rule.is_open OR %(id)s::bigint IS NOT NULL)
  AND (%(before)s::bigint IS NULL OR rule.id < %(before)s::bigint)
ORDER BY rule.id DESC LIMIT %(limit)s::integer;


-- of_undone --
-- The turns of these words in sessions of a theme, and those that are hidden as taken back: their words, when they were
-- said, whether they are hidden, whether as taken back, and whether they may be: not where an operator has shown again what
-- was taken back until then.
SELECT turn.id, encode(turn.digest, 'hex'), (extract(epoch FROM turn.ts) * 1000000)::bigint, turn.hidden_by IS NOT NULL,
       coalesce(rule.rule = 'undone', false),
       NOT EXISTS (SELECT FROM hidden AS over
                   WHERE over.rule = 'undone' AND over.theme = %(theme)s AND over.session_id = ANY(%(session_ids)s)
                     AND over.undone_at IS NOT NULL AND turn.ts <= over.at)
FROM conversations AS turn LEFT JOIN hidden AS rule ON rule.id = turn.hidden_by
WHERE turn.agent_identity = %(theme)s AND turn.session_id = ANY(%(session_ids)s) AND turn.role IN ('user', 'assistant')
  AND turn.digest IS NOT NULL
  AND (rule.rule = 'undone' OR turn.digest = ANY(ARRAY(SELECT decode(word, 'hex') FROM unnest(%(digests)s::text[]) AS given (word))));


-- same_memories --
-- A memory of the theme, and those of the same words, each with whether it is hidden and whose file has it.
SELECT same.agent_identity, same.id, same.hidden_by IS NOT NULL,
       CASE WHEN same.homes - 'mcp' <> '{}'::jsonb THEN same.target END
FROM memory_entries AS named
JOIN memory_entries AS same ON same.agent_identity = named.agent_identity AND same.content = named.content
WHERE named.agent_identity = coalesce((SELECT alias.new FROM theme_aliases AS alias WHERE alias.old = %(theme)s::text), %(theme)s::text)
  AND named.id = %(id)s::bigint
ORDER BY same.id <> named.id, same.id;


-- same_turns --
-- A turn of the theme, and those of the same words, each with whether it is hidden.
SELECT same.agent_identity, same.id, same.hidden_by IS NOT NULL, NULL::text
FROM conversations AS named
JOIN conversations AS same ON same.agent_identity = named.agent_identity AND same.content = named.content
WHERE named.agent_identity = coalesce((SELECT alias.new FROM theme_aliases AS alias WHERE alias.old = %(theme)s::text), %(theme)s::text)
  AND named.id = %(id)s::bigint
ORDER BY same.id <> named.id, same.id;


-- show_memories --
-- Lets searches find memories again, unless another rule is about them.
UPDATE memory_entries AS entry SET hidden_by = (
    SELECT min(rule.id) FROM hidden AS rule
    WHERE rule.is_open AND rule.undone_at IS NULL
      AND hermes_is_within(rule.theme, rule.session_id, rule.origin, rule.since, rule.until, entry.agent_identity,
                           entry.metadata ->> 'session_id', hermes_origin_of_memory(entry.origin, entry.metadata),
                           entry.untrusted, entry.metadata, entry.updated_at))
FROM unnest(%(themes)s::text[], %(ids)s::bigint[]) AS given (theme, id)
WHERE entry.agent_identity = given.theme AND entry.id = given.id AND entry.hidden_by IS NOT NULL
RETURNING entry.agent_identity, entry.id, entry.hidden_by IS NULL;


-- show_turns --
-- Lets searches find turns again, unless another rule is about them.
UPDATE conversations AS turn SET hidden_by = (
    SELECT min(rule.id) FROM hidden AS rule
    WHERE rule.is_open AND rule.undone_at IS NULL
      AND hermes_is_within(rule.theme, rule.session_id, rule.origin, rule.since, rule.until, turn.agent_identity,
                           turn.session_id, hermes_origin_of_turn(turn.origin, turn.role), turn.untrusted, turn.metadata, turn.ts))
FROM unnest(%(themes)s::text[], %(ids)s::bigint[]) AS given (theme, id)
WHERE turn.agent_identity = given.theme AND turn.id = given.id AND turn.hidden_by IS NOT NULL
RETURNING turn.agent_identity, turn.id, turn.session_id, turn.hidden_by IS NULL;


-- totals --
-- How many turns and memories are hidden.
SELECT count(*) FILTER (WHERE kind = 'turn'), count(*) FILTER (WHERE kind = 'memory') FROM hermes_rows WHERE hidden_by IS NOT NULL;


-- twins --
-- A rule that is in force, and those that were made with it in other buckets.
SELECT DISTINCT twin.id FROM hidden AS rule
JOIN hidden AS twin ON twin.rule = rule.rule AND twin.actor = rule.actor AND twin.at = rule.at
WHERE rule.id = %(id)s::bigint AND twin.undone_at IS NULL
ORDER BY twin.id;


-- within --
-- The rows within bounds that somebody names, the newest first; null for no such bound.
SELECT stored.kind, stored.theme, stored.id, stored.hidden_by IS NOT NULL FROM hermes_rows AS stored
WHERE hermes_is_within(%(theme)s::text, %(session_id)s::text, %(origin)s::text, %(since)s::timestamptz, %(until)s::timestamptz,
                       stored.theme, coalesce(stored.session_id, stored.metadata ->> 'session_id'), stored.origin, stored.untrusted,
                       stored.metadata, stored.at)
ORDER BY stored.at DESC, stored.kind DESC, stored.id DESC;
