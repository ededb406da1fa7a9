-- The memory with this id, whichever theme it belongs to, with the homes that hold it.
--
-- theme: null to look into all; id. The queue is the coordinator's, so it is asked when the memory is found.
WITH entry AS MATERIALIZED (
    SELECT found.*, coalesce((SELECT jsonb_object_agg(source.home_id, source.origin) FROM memory_sources AS source
                              WHERE source.agent_identity = found.agent_identity AND source.entry_id = found.id),
                             '{}'::jsonb) AS homes
    FROM (SELECT DISTINCT agent_identity FROM theme_growth
          WHERE %(theme)s::text IS NULL OR agent_identity = %(theme)s::text) AS theme
    JOIN memory_entries AS found ON found.agent_identity = theme.agent_identity AND found.id = %(id)s::bigint
)
SELECT entry.agent_identity, entry.id, entry.target, entry.content, entry.created_at, entry.updated_at, entry.metadata,
       entry.muted_at, pending.attempts, hermes_origin_of_memory(entry.origin, entry.metadata), entry.trust, entry.home_id,
       entry.homes
FROM entry
LEFT JOIN pending_vectors AS pending
  ON pending.agent_identity = entry.agent_identity AND pending.kind = 'memory' AND pending.id = entry.id;
