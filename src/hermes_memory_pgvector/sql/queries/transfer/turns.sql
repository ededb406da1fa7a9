-- Every turn in the order in which a session goes, for an export; null stands for no vectors.
--
-- theme, session_id, since, until, origin: null for no such limit.
SELECT turn.agent_identity, turn.session_id, turn.role, turn.content, turn.ts, turn.metadata, turn.parent_session_id,
       turn.ordinal, turn.muted_at, turn.origin, turn.home_id, turn.trust,
       (SELECT min(batch.at) FROM quarantined_turns AS held JOIN quarantines AS batch ON batch.id = held.quarantine_id
        WHERE held.agent_identity = turn.agent_identity AND held.id = turn.id) AS quarantined,
       CASE WHEN turn.digest <> hermes_turn_digest(turn.role, turn.content) THEN encode(turn.digest, 'hex') END AS digest, NULL::text[] AS vectors
FROM conversations AS turn
WHERE (%(theme)s::text IS NULL OR turn.agent_identity = %(theme)s::text)
  AND (%(session_id)s::text IS NULL OR turn.session_id = %(session_id)s::text)
  AND (%(since)s::timestamptz IS NULL OR turn.ts >= %(since)s::timestamptz)
  AND (%(until)s::timestamptz IS NULL OR turn.ts < %(until)s::timestamptz)
  AND (%(origin)s::text IS NULL OR hermes_is_from(
           hermes_origin_of_turn(turn.origin, turn.role), turn.trust, turn.metadata, %(origin)s::text))
ORDER BY turn.agent_identity COLLATE "C", turn.session_id COLLATE "C", turn.ts, turn.id;
