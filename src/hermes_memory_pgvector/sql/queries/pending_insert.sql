-- Asks for vectors of these rows.
INSERT INTO pending_vectors (agent_identity, kind, id)
SELECT theme, kind, id FROM unnest(%(themes)s::text[], %(kinds)s::text[], %(ids)s::bigint[]) AS new (theme, kind, id)
ON CONFLICT (agent_identity, kind, id) DO UPDATE SET due_at = now(), attempts = 0;
