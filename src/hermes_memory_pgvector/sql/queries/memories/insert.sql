-- Adds entries to a theme; answers the id of each.
INSERT INTO memory_entries (agent_identity, target, content, created_at, updated_at, metadata, lexemes)
SELECT %(theme)s, %(target)s, new.content, new.created_at, new.updated_at, new.metadata::jsonb, new.lexemes::tsvector
FROM unnest(%(contents)s::text[], %(created)s::timestamptz[], %(updated)s::timestamptz[], %(metadata)s::text[],
            %(lexemes)s::text[])
     WITH ORDINALITY AS new (content, created_at, updated_at, metadata, lexemes, place)
ORDER BY new.place
RETURNING content, id;
