-- Takes these rows off the queue for vectors.
DELETE FROM pending_vectors AS pending
USING unnest(%(themes)b::text[], %(kinds)b::text[], %(ids)b::bigint[]) AS done (theme, kind, id)
WHERE pending.agent_identity = done.theme AND pending.kind = done.kind AND pending.id = done.id;
