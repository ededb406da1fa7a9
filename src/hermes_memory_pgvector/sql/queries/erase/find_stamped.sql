-- Rows whose metadata contain what somebody names, names of sessions apart: table, theme and number.
(SELECT 'conversations', turn.agent_identity, turn.id
 FROM conversations AS turn
 WHERE (%(theme)s::text IS NULL OR turn.agent_identity = %(theme)s::text)
   AND (%(session_id)s::text IS NULL OR turn.session_id = %(session_id)s::text)
   AND (%(before)s::timestamptz IS NULL OR turn.ts < %(before)s::timestamptz)
   AND (turn.ts <= %(cut)s::timestamptz OR turn.id <= %(turn_horizon)s::bigint)
   AND EXISTS (SELECT FROM unnest(%(needles)s::text[]) AS one (needle)
               WHERE strpos(lower((turn.metadata - %(names)s::text[])::text), lower(one.needle)) > 0)
 LIMIT %(limit)s::integer)
UNION ALL
(SELECT 'memory_entries', entry.agent_identity, entry.id
 FROM memory_entries AS entry
 WHERE (%(theme)s::text IS NULL OR entry.agent_identity = %(theme)s::text)
   AND (%(session_id)s::text IS NULL OR entry.metadata ->> 'session_id' = %(session_id)s::text)
   AND (%(before)s::timestamptz IS NULL OR entry.updated_at < %(before)s::timestamptz)
   AND (entry.updated_at <= %(cut)s::timestamptz OR entry.id <= %(memory_horizon)s::bigint)
   AND EXISTS (SELECT FROM unnest(%(needles)s::text[]) AS one (needle)
               WHERE strpos(lower((entry.metadata - %(names)s::text[])::text), lower(one.needle)) > 0)
 LIMIT %(limit)s::integer)
UNION ALL
(SELECT 'delegations', edge.agent_identity, edge.id
 FROM delegations AS edge
 WHERE (%(theme)s::text IS NULL OR edge.agent_identity = %(theme)s::text)
   AND (%(session_id)s::text IS NULL OR edge.session_id = %(session_id)s::text)
   AND (%(before)s::timestamptz IS NULL OR edge.ts < %(before)s::timestamptz)
   AND (edge.ts <= %(cut)s::timestamptz OR edge.id <= %(edge_horizon)s::bigint)
   AND EXISTS (SELECT FROM unnest(%(needles)s::text[]) AS one (needle)
               WHERE strpos(lower((edge.metadata - %(names)s::text[])::text), lower(one.needle)) > 0)
 LIMIT %(limit)s::integer);
