-- Gives an entry its new content; a muted one stays so.
UPDATE memory_entries
SET content = %(content)s, updated_at = %(updated_at)s::timestamptz, metadata = %(metadata)s::jsonb,
    origin = %(origin)s::text, home_id = nullif(%(home_id)s, ''), trust = %(trust)s::text,
    lexemes = CASE WHEN muted_at IS NULL THEN %(lexemes)s::tsvector ELSE ''::tsvector END
WHERE agent_identity = %(theme)s AND id = %(id)s;
