-- Turns that somebody names, in the order of their keys.
--
-- theme, session_id, before, ids: null for any. needles: texts, one of which their words contain, in any spelling of case;
-- null for any. authors: what their metadata name as the author; null for any. cut: none that was said later, unless it was
-- there before the request, with a number no higher than horizon.
SELECT turn.agent_identity, turn.id, turn.session_id, turn.role, turn.content, turn.ts, turn.metadata, turn.ordinal,
       encode(coalesce(turn.digest, hermes_turn_digest(turn.role, turn.content)), 'hex')
FROM conversations AS turn
WHERE (%(theme)s::text IS NULL OR turn.agent_identity = %(theme)s::text)
  AND (%(session_id)s::text IS NULL OR turn.session_id = %(session_id)s::text)
  AND (%(before)s::timestamptz IS NULL OR turn.ts < %(before)s::timestamptz)
  AND (%(ids)s::bigint[] IS NULL OR turn.id = ANY (%(ids)s::bigint[]))
  AND (%(needles)s::text[] IS NULL
       OR EXISTS (SELECT FROM unnest(%(needles)s::text[]) AS one (needle)
                  WHERE strpos(lower(turn.content), lower(one.needle)) > 0))
  AND (%(authors)s::text[] IS NULL
       OR EXISTS (SELECT FROM jsonb_path_query(turn.metadata, '$.author.*') AS value
                  WHERE lower(value #>> '{}') = ANY (%(authors)s::text[])))
  AND (turn.ts <= %(cut)s::timestamptz OR turn.id <= %(horizon)s::bigint)
ORDER BY turn.agent_identity, turn.id
LIMIT %(limit)s::integer;
