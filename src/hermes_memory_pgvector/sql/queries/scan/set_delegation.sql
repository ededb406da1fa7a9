-- Gives an edge between sessions other metadata.
UPDATE delegations SET metadata = %(metadata)s::jsonb WHERE agent_identity = %(theme)s AND id = %(id)s;
