-- Lets searches find a turn again.
UPDATE conversations SET muted_at = NULL, lexemes = %(lexemes)s::tsvector
WHERE agent_identity = %(theme)s AND id = %(id)s AND muted_at IS NOT NULL;
