-- The turn with this id, whichever theme it belongs to.
--
-- theme: null to look into all; id. The queue is the coordinator's, so it is asked when the turn is found.
WITH turn AS MATERIALIZED (
    SELECT found.* FROM (SELECT DISTINCT agent_identity FROM theme_growth
                         WHERE %(theme)s::text IS NULL OR agent_identity = %(theme)s::text) AS theme
    JOIN conversations AS found ON found.agent_identity = theme.agent_identity AND found.id = %(id)s::bigint
)
SELECT turn.agent_identity, turn.id, turn.session_id, turn.role, turn.content, turn.ts, turn.metadata, turn.muted_at,
       turn.parent_session_id, pending.attempts, hermes_origin_of_turn(turn.origin, turn.role), turn.trust, turn.home_id
FROM turn
LEFT JOIN pending_vectors AS pending
  ON pending.agent_identity = turn.agent_identity AND pending.kind = 'turn' AND pending.id = turn.id;
