-- The memory with this id, whichever theme it belongs to, with the homes that hold it.
--
-- theme: null to look into all; id.
SELECT entry.agent_identity, entry.id, entry.target, entry.content, entry.created_at, entry.updated_at, entry.metadata,
       entry.muted_at, pending.attempts, hermes_origin_of_memory(entry.origin, entry.metadata), entry.trust, entry.home_id,
       coalesce((SELECT jsonb_object_agg(source.home_id, source.origin) FROM memory_sources AS source
                 WHERE source.agent_identity = entry.agent_identity AND source.entry_id = entry.id), '{}'::jsonb)
FROM (SELECT DISTINCT agent_identity FROM theme_growth
      WHERE %(theme)s::text IS NULL OR agent_identity = %(theme)s::text) AS theme
JOIN memory_entries AS entry ON entry.agent_identity = theme.agent_identity AND entry.id = %(id)s::bigint
LEFT JOIN pending_vectors AS pending
  ON pending.agent_identity = entry.agent_identity AND pending.kind = 'memory' AND pending.id = entry.id;
