-- Gives logged recalls another theme.
UPDATE recall_log AS logged SET agent_identity = %(other)s
FROM unnest(%(ids)s::bigint[]) AS moved (id)
WHERE logged.agent_identity = %(theme)s AND logged.id = moved.id;
