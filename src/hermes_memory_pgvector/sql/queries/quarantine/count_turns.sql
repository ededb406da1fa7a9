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
