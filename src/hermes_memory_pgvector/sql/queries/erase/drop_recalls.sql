-- Deletes logged recalls by their keys.
DELETE FROM recall_log AS logged
USING unnest(%(themes)s::text[], %(ids)s::bigint[]) AS gone (theme, id)
WHERE logged.agent_identity = gone.theme AND logged.id = gone.id;
