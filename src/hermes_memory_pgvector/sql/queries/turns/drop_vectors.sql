-- Deletes the vectors of turns, to be made anew.
DELETE FROM {turn_vectors} AS vector
USING unnest(%(themes)s::text[], %(ids)s::bigint[]) AS gone (theme, id)
WHERE vector.agent_identity = gone.theme AND vector.id = gone.id
RETURNING vector.agent_identity, vector.id;
