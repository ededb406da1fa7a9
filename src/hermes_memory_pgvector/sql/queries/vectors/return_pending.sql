-- Gives leases back: these rows are due again after a pause.
UPDATE pending_vectors AS pending
SET due_at = now() + make_interval(secs => %(pause)s::double precision * least(pending.attempts, 60))
FROM unnest(%(themes)b::text[], %(kinds)b::text[], %(ids)b::bigint[]) AS back (theme, kind, id)
WHERE pending.agent_identity = back.theme AND pending.kind = back.kind AND pending.id = back.id;
