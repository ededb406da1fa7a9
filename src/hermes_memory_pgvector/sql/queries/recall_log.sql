-- contents --
-- The texts of these memories and turns, as far as they are still there.
SELECT asked.kind, asked.id, coalesce(entry.content, turn.content)
FROM unnest(%(kinds)s::text[], %(themes)s::text[], %(ids)s::bigint[]) AS asked (kind, theme, id)
LEFT JOIN memory_entries AS entry
  ON asked.kind = 'memory' AND entry.agent_identity = asked.theme AND entry.id = asked.id
LEFT JOIN conversations AS turn ON asked.kind = 'turn' AND turn.agent_identity = asked.theme AND turn.id = asked.id
WHERE coalesce(entry.content, turn.content) IS NOT NULL;


-- insert --
-- Adds to the log of what recall answered.
INSERT INTO recall_log (agent_identity, at, session_id, caller, kind, scope, query, degraded, hits, milliseconds)
SELECT given.theme, given.at, given.session_id, given.caller, given.kind, given.scope, given.query, given.degraded,
       given.hits::jsonb, given.milliseconds
FROM unnest(%(themes)s::text[], %(ats)s::timestamptz[], %(session_ids)s::text[], %(callers)s::text[], %(kinds)s::text[],
            %(scopes)s::text[], %(queries)s::text[], %(degraded)s::text[], %(hits)s::text[], %(milliseconds)s::real[])
     WITH ORDINALITY
     AS given (theme, at, session_id, caller, kind, scope, query, degraded, hits, milliseconds, place)
ORDER BY given.place;


-- list --
-- What recall answered lately in a theme, newest first.
--
-- session_id, caller: null for any; limit.
SELECT id, at, session_id, caller, kind, scope, query, degraded, hits, milliseconds
FROM recall_log
WHERE agent_identity = %(theme)s
  AND (%(session_id)s::text IS NULL OR session_id = %(session_id)s::text)
  AND (%(caller)s::text IS NULL OR caller = %(caller)s::text)
ORDER BY id DESC LIMIT %(limit)s::integer;


-- trim --
-- Keeps the newest answers of these themes in the log, so many of each.
DELETE FROM recall_log AS log
USING unnest(%(themes)s::text[]) AS given (theme)
WHERE log.agent_identity = given.theme
  AND log.id <= (SELECT older.id FROM recall_log AS older
                 WHERE older.agent_identity = given.theme ORDER BY older.id DESC OFFSET %(keep)s::integer LIMIT 1);
