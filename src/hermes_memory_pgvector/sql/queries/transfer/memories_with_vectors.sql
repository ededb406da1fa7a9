-- Every memory with the homes that hold it, for an export, each with its vectors: chunk, blank, numbers.
--
-- theme, since, until (of its last change): null for no such limit.
SELECT memory.agent_identity, memory.target, memory.content, memory.created_at, memory.updated_at, memory.metadata,
       memory.muted_at, memory.origin, memory.home_id, memory.trust,
       (SELECT min(batch.at) FROM quarantined_memories AS held JOIN quarantines AS batch ON batch.id = held.quarantine_id
        WHERE held.agent_identity = memory.agent_identity AND held.id = memory.id) AS quarantined,
       (SELECT coalesce(jsonb_object_agg(held.home_id, held.origin), '{{}}') FROM memory_sources AS held
        WHERE held.agent_identity = memory.agent_identity AND held.entry_id = memory.id) AS homes,
       (SELECT array_agg(own.chunk || ' ' || own.embedding::text ORDER BY own.chunk)
        FROM {memory_vectors} AS own
        WHERE own.agent_identity = memory.agent_identity AND own.id = memory.id) AS vectors
FROM memory_entries AS memory
WHERE (%(theme)s::text IS NULL OR memory.agent_identity = %(theme)s::text)
  AND (%(since)s::timestamptz IS NULL OR memory.updated_at >= %(since)s::timestamptz)
  AND (%(until)s::timestamptz IS NULL OR memory.updated_at < %(until)s::timestamptz)
  AND (%(origin)s::text IS NULL OR hermes_is_from(
           hermes_origin_of_memory(memory.origin, memory.metadata), memory.trust, memory.metadata, %(origin)s::text))
ORDER BY memory.agent_identity COLLATE "C", memory.target, memory.created_at, memory.content COLLATE "C";
