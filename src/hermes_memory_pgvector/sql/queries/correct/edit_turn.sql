-- Gives a turn other words. Its digest stays that of the words once said, so that whoever reports those again adds nothing.
UPDATE conversations
SET content = %(content)s, metadata = metadata || %(metadata)s::jsonb,
    lexemes = CASE WHEN muted_at IS NULL THEN %(lexemes)s::tsvector ELSE ''::tsvector END
WHERE agent_identity = %(theme)s AND id = %(id)s AND content = %(former)s;
