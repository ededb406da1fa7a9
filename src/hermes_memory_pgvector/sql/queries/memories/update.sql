-- Gives an entry its new content.
UPDATE memory_entries
SET content = %(content)s, updated_at = %(updated_at)s::timestamptz, metadata = %(metadata)s::jsonb,
    lexemes = %(lexemes)s::tsvector
WHERE agent_identity = %(theme)s AND id = %(id)s;
