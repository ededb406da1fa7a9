-- Gives rows other metadata.
UPDATE delegations AS kept SET metadata = new.metadata::jsonb
FROM unnest(%(themes)s::text[], %(ids)s::bigint[], %(metadata)s::text[]) AS new (theme, id, metadata)
WHERE kept.agent_identity = new.theme AND kept.id = new.id;
