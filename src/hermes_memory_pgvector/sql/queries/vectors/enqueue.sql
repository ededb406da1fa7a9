-- Puts these rows into the queue for vectors.
INSERT INTO pending_vectors (agent_identity, kind, id)
SELECT theme, kind, id FROM unnest(%(themes)b::text[], %(kinds)b::text[], %(ids)b::bigint[]) AS new (theme, kind, id)
ON CONFLICT (agent_identity, kind, id) DO UPDATE SET due_at = now(), attempts = 0;
