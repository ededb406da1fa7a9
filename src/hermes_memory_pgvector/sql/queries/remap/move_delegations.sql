-- Gives delegations another theme.
UPDATE delegations AS edge SET agent_identity = %(other)s
FROM unnest(%(ids)s::bigint[]) AS moved (id)
WHERE edge.agent_identity = %(theme)s AND edge.id = moved.id;
