-- Logged recalls of a theme, a session or a time, or whose question holds what somebody names; null for any.
SELECT logged.agent_identity, logged.id
FROM recall_log AS logged
WHERE (%(theme)s::text IS NULL OR logged.agent_identity = %(theme)s::text)
  AND (%(session_id)s::text IS NULL OR logged.session_id = %(session_id)s::text)
  AND (%(before)s::timestamptz IS NULL OR logged.at < %(before)s::timestamptz)
  AND (%(needles)s::text[] IS NULL
       OR EXISTS (SELECT FROM unnest(%(needles)s::text[]) AS one (needle)
                  WHERE strpos(lower(logged.query), lower(one.needle)) > 0))
  AND (logged.at <= %(cut)s::timestamptz OR logged.id <= %(horizon)s::bigint)
ORDER BY logged.agent_identity, logged.id
LIMIT %(limit)s::integer;
