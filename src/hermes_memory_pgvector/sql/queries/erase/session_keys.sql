-- The turns of these sessions in the order they were said, and which of them somebody names; the options are those of
-- find_turns.
SELECT turn.agent_identity, turn.session_id, turn.id,
       (%(before)s::timestamptz IS NULL OR turn.ts < %(before)s::timestamptz)
           AND (%(ids)s::bigint[] IS NULL OR turn.id = ANY (%(ids)s::bigint[]))
           AND (%(needles)s::text[] IS NULL
                OR EXISTS (SELECT FROM unnest(%(needles)s::text[]) AS one (needle)
                           WHERE strpos(lower(turn.content), lower(one.needle)) > 0))
           AND (%(authors)s::text[] IS NULL
                OR EXISTS (SELECT FROM jsonb_path_query(turn.metadata, '$.author.*') AS value
                           WHERE lower(value #>> '{}') = ANY (%(authors)s::text[])))
           AND (turn.ts <= %(cut)s::timestamptz OR turn.id <= %(horizon)s::bigint)
FROM unnest(%(themes)s::text[], %(session_ids)s::text[]) AS asked (theme, session_id)
JOIN conversations AS turn ON turn.agent_identity = asked.theme AND turn.session_id = asked.session_id
ORDER BY turn.agent_identity, turn.session_id, turn.ts, turn.id;
