-- What waits for a vector goes with its rows.
UPDATE pending_vectors AS pending SET agent_identity = %(other)s
FROM unnest(%(ids)s::bigint[]) AS moved (id)
WHERE pending.agent_identity = %(theme)s AND pending.kind = %(kind)s AND pending.id = moved.id;
