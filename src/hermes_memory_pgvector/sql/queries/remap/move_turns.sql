-- Gives turns another theme, and the place their words have there; their vectors go with them.
UPDATE conversations AS turn SET agent_identity = %(other)s, ordinal = moved.ordinal
FROM unnest(%(ids)s::bigint[], %(ordinals)s::integer[]) AS moved (id, ordinal)
WHERE turn.agent_identity = %(theme)s AND turn.id = moved.id;
