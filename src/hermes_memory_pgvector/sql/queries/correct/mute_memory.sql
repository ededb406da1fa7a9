-- Keeps a memory out of every search.
UPDATE memory_entries SET muted_at = now(), lexemes = ''::tsvector
WHERE agent_identity = %(theme)s AND id = %(id)s AND muted_at IS NULL;
