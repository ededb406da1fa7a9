-- Adds an entry; answers its id.
INSERT INTO memory_entries (agent_identity, target, content, created_at, updated_at, metadata, lexemes)
VALUES (%(theme)s, %(target)s, %(content)s, %(created_at)s::timestamptz, %(updated_at)s::timestamptz,
        %(metadata)s::jsonb, %(lexemes)s::tsvector)
RETURNING id;
