-- Per theme: the metadata of these rows, locked.
SELECT kept.agent_identity, kept.id, kept.metadata
FROM unnest(%(themes)s::text[], %(ids)s::bigint[]) AS asked (theme, id)
JOIN delegations AS kept ON kept.agent_identity = %(theme)s::text AND kept.id = asked.id
FOR UPDATE OF kept;
