-- The contents of a theme's muted memories.
SELECT content FROM memory_entries
WHERE agent_identity = %(theme)s AND target = %(target)s AND muted_at IS NOT NULL;
