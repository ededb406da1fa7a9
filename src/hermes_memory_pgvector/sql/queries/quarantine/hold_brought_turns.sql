-- Takes turns out of recall that an export says are; arrays of equal length.
INSERT INTO quarantined_turns (agent_identity, id, quarantine_id)
SELECT turn.agent_identity, turn.id, given.quarantine_id
FROM unnest(%(themes)s::text[], %(session_ids)s::text[], %(digests)s::text[], %(ordinals)s::integer[],
            %(quarantine_ids)s::bigint[]) AS given (theme, session_id, digest, ordinal, quarantine_id)
JOIN conversations AS turn ON turn.agent_identity = given.theme AND turn.session_id = given.session_id
 AND turn.digest = decode(given.digest, 'hex') AND turn.ordinal = given.ordinal
WHERE NOT EXISTS (SELECT FROM quarantined_turns AS held WHERE held.agent_identity = turn.agent_identity AND held.id = turn.id)
ON CONFLICT DO NOTHING;
