-- The contents of a theme's memories that are muted or in quarantine.
SELECT content FROM memory_entries AS entry
WHERE agent_identity = %(theme)s AND target = %(target)s
  AND (muted_at IS NOT NULL OR EXISTS (
           SELECT FROM quarantined_memories AS held
           WHERE held.agent_identity = %(theme)s AND held.id = entry.id));
