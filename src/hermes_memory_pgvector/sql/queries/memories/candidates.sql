-- The theme's entries that these operations could mean: the same content, or content with one of these texts in it.
SELECT entry.id, entry.content, entry.created_at, entry.updated_at, entry.metadata, entry.muted_at,
       entry.origin, entry.home_id, entry.trust,
       coalesce((SELECT jsonb_object_agg(source.home_id, source.origin) FROM memory_sources AS source
                 WHERE source.agent_identity = %(theme)s AND source.entry_id = entry.id), '{}'::jsonb)
FROM memory_entries AS entry
WHERE entry.agent_identity = %(theme)s AND entry.target = %(target)s
  AND (%(everything)s::boolean
       OR hermes_digest(entry.content) IN (SELECT hermes_digest(given) FROM unnest(%(contents)s::text[]) AS given)
       OR EXISTS (SELECT FROM unnest(%(old_texts)s::text[]) AS old (part) WHERE strpos(entry.content, old.part) > 0));
