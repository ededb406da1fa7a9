-- The sessions that hold turns somebody names; the options are those of find_turns.
SELECT DISTINCT turn.agent_identity, turn.session_id
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
  AND turn.id > %(above)s::bigint
ORDER BY 1, 2;
