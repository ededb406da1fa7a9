-- Takes every turn that a rule is about out of recall.
INSERT INTO quarantined_turns (agent_identity, id, quarantine_id)
SELECT turn.agent_identity, turn.id, %(id)s::bigint
FROM conversations AS turn
WHERE (%(theme)s::text IS NULL OR turn.agent_identity = %(theme)s::text)
  AND (%(session_id)s::text IS NULL OR turn.session_id = %(session_id)s::text)
  AND (%(origin)s::text IS NULL OR hermes_is_from(
           hermes_origin_of_turn(turn.origin, turn.role), turn.trust, turn.metadata, %(origin)s::text))
  AND (%(since)s::timestamptz IS NULL OR turn.ts >= %(since)s::timestamptz)
  AND (%(until)s::timestamptz IS NULL OR turn.ts < %(until)s::timestamptz)
ON CONFLICT DO NOTHING;
