-- Takes rows that are gone off the queue for vectors.
DELETE FROM pending_vectors AS pending
USING unnest(%(themes)s::text[], %(kinds)s::text[], %(ids)s::bigint[]) AS gone (theme, kind, id)
WHERE pending.agent_identity = gone.theme AND pending.kind = gone.kind AND pending.id = gone.id;
