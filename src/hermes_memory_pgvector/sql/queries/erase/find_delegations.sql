-- Delegations that somebody names by theme, session and time; null for any.
SELECT edge.agent_identity, edge.id
FROM delegations AS edge
WHERE (%(theme)s::text IS NULL OR edge.agent_identity = %(theme)s::text)
  AND (%(session_id)s::text IS NULL OR %(session_id)s::text IN (edge.session_id, edge.child_session_id))
  AND (%(before)s::timestamptz IS NULL OR edge.ts < %(before)s::timestamptz)
  AND (edge.ts <= %(cut)s::timestamptz OR edge.id <= %(horizon)s::bigint)
LIMIT %(limit)s::integer;
