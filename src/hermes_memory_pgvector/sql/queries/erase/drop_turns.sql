-- Deletes turns by their keys; their vectors go with them.
DELETE FROM conversations AS turn
USING unnest(%(themes)s::text[], %(ids)s::bigint[]) AS gone (theme, id)
WHERE turn.agent_identity = gone.theme AND turn.id = gone.id;
