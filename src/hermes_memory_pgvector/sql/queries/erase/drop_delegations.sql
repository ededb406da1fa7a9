-- Deletes delegations by their keys.
DELETE FROM delegations AS edge
USING unnest(%(themes)s::text[], %(ids)s::bigint[]) AS gone (theme, id)
WHERE edge.agent_identity = gone.theme AND edge.id = gone.id;
