-- Lets searches find a memory again.
UPDATE memory_entries SET muted_at = NULL, lexemes = %(lexemes)s::tsvector
WHERE agent_identity = %(theme)s AND id = %(id)s AND muted_at IS NOT NULL;
