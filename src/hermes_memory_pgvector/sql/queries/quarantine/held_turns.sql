-- Turns of a theme that a quarantine holds, the newest first, before a place in time.
--
-- theme; id: the quarantine; before, before_id: null for open, the place itself is not included; limit.
SELECT turn.agent_identity, turn.id, turn.ts, turn.session_id, turn.role, turn.content, turn.muted_at,
       hermes_origin_of_turn(turn.origin, turn.role), turn.trust
FROM quarantined_turns AS held
JOIN conversations AS turn ON turn.agent_identity = held.agent_identity AND turn.id = held.id
WHERE held.agent_identity = %(theme)s::text AND held.quarantine_id = %(id)s::bigint
  AND (%(before)s::timestamptz IS NULL OR (turn.ts, turn.id) < (%(before)s::timestamptz, %(before_id)s::bigint))
ORDER BY turn.ts DESC, turn.id DESC LIMIT %(limit)s::integer;
