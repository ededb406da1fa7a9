-- Leases rows that want a vector, those that have waited longest first.
UPDATE pending_vectors AS pending
SET due_at = now() + make_interval(secs => %(lease)s::double precision), attempts = pending.attempts + 1
FROM (
    SELECT agent_identity, kind, id FROM pending_vectors
    WHERE due_at <= now() ORDER BY due_at LIMIT %(limit)s::integer
    FOR UPDATE SKIP LOCKED
) AS due
WHERE pending.agent_identity = due.agent_identity AND pending.kind = due.kind AND pending.id = due.id
RETURNING pending.agent_identity, pending.kind, pending.id, pending.due_at;
