-- contents --
-- How much a theme holds of each kind, and how many of its memories another theme has, too.
SELECT (SELECT count(*) FROM conversations WHERE agent_identity = %(theme)s),
       (SELECT count(*) FROM memory_entries WHERE agent_identity = %(theme)s),
       (SELECT count(*) FROM memory_operations WHERE agent_identity = %(theme)s),
       (SELECT count(*) FROM recall_log WHERE agent_identity = %(theme)s),
       (SELECT count(*) FROM memory_entries AS entry WHERE entry.agent_identity = %(theme)s
        AND EXISTS (SELECT FROM memory_entries AS same WHERE same.agent_identity = %(other)s AND same.target = entry.target
                    AND hermes_digest(same.content) = hermes_digest(entry.content)));


-- drop_alias --
-- A theme that went into another one is a theme again.
DELETE FROM theme_aliases WHERE old = %(theme)s;


-- drop_entries --
-- Memories of a theme that another theme has, too.
DELETE FROM memory_entries AS entry
WHERE entry.agent_identity = %(theme)s
  AND EXISTS (SELECT FROM memory_entries AS same
              WHERE same.agent_identity = %(other)s AND same.target = entry.target
                AND hermes_digest(same.content) = hermes_digest(entry.content));


-- drop_turns --
-- Turns of a theme that another theme has, too: the same words in the same session, no more than `window` seconds apart.
DELETE FROM conversations AS turn
WHERE turn.agent_identity = %(theme)s
  AND EXISTS (SELECT FROM conversations AS same
              WHERE same.agent_identity = %(other)s AND same.session_id = turn.session_id AND same.digest = turn.digest
                AND abs(extract(epoch FROM same.ts - turn.ts)) <= %(window)s::double precision);


-- drop_waiting --
-- What waits for a vector and has no row.
DELETE FROM pending_vectors AS pending
WHERE pending.agent_identity = %(theme)s
  AND NOT EXISTS (SELECT FROM memory_entries AS entry
                  WHERE pending.kind = 'memory' AND entry.agent_identity = %(theme)s AND entry.id = pending.id)
  AND NOT EXISTS (SELECT FROM conversations AS turn
                  WHERE pending.kind = 'turn' AND turn.agent_identity = %(theme)s AND turn.id = pending.id);


-- insert_alias --
-- From now on, what is written to one theme goes to another.
INSERT INTO theme_aliases (old, new, finished_at) VALUES (%(old)s, %(new)s, now())
ON CONFLICT (old) DO UPDATE SET new = excluded.new;


-- is_referred_to --
-- Do other themes go by this name, or is anything hidden under it?
SELECT EXISTS (SELECT FROM theme_aliases WHERE new = %(theme)s)
    OR EXISTS (SELECT FROM hidden WHERE theme = %(theme)s AND undone_at IS NULL);


-- move_aliases --
-- Themes that went into this one go where it goes.
UPDATE theme_aliases SET new = %(other)s WHERE new = %(theme)s AND old <> %(other)s;


-- move_entries --
-- Gives memories another theme; their vectors go with them.
UPDATE memory_entries SET agent_identity = %(other)s WHERE agent_identity = %(theme)s;


-- move_history --
-- Gives the history of memories another theme.
UPDATE memory_operations SET agent_identity = %(other)s WHERE agent_identity = %(theme)s;


-- move_recalls --
-- Gives logged recalls another theme.
UPDATE recall_log SET agent_identity = %(other)s WHERE agent_identity = %(theme)s;


-- move_rules --
-- What is hidden in a theme is so under its new name.
UPDATE hidden SET theme = %(other)s WHERE theme = %(theme)s;


-- move_turns --
-- Gives turns another theme, and the place their words have there; their vectors go with them.
UPDATE conversations AS turn
SET agent_identity = %(other)s,
    ordinal = turn.ordinal + coalesce((SELECT max(same.ordinal) FROM conversations AS same
                                       WHERE same.agent_identity = %(other)s AND same.session_id = turn.session_id
                                         AND same.digest = turn.digest), 0)
WHERE turn.agent_identity = %(theme)s;


-- move_waiting --
-- What waits for a vector goes with its rows.
UPDATE pending_vectors SET agent_identity = %(other)s WHERE agent_identity = %(theme)s;


-- set_place --
-- A theme lies in this bucket, whatever its name says.
INSERT INTO theme_places (theme, bucket) VALUES (%(theme)s, %(bucket)s)
ON CONFLICT (theme) DO UPDATE SET bucket = excluded.bucket;


-- share_homes --
-- Of a memory that two themes have, the homes that hold it in one hold it in the other.
UPDATE memory_entries AS same SET homes = entry.homes || same.homes
FROM memory_entries AS entry
WHERE entry.agent_identity = %(theme)s AND same.agent_identity = %(other)s AND same.target = entry.target
  AND hermes_digest(same.content) = hermes_digest(entry.content);
