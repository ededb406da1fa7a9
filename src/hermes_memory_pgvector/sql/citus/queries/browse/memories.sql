-- Memories of one theme or of all, last changed first, before a place in time.
--
-- theme, origin: null for all; since, before, before_id: null for open, the place itself is not included; limit. Only the themes
-- whose newest rows are the newest of all can hold one of them, so no more than `limit` themes are read, and of those
-- nothing that is older than the oldest of these newest rows.
SELECT entry.agent_identity, entry.id, entry.updated_at, entry.target, entry.content, entry.muted_at,
       hermes_origin_of_memory(entry.origin, entry.metadata), entry.trust
FROM memory_entries AS entry
WHERE (%(theme)s::text IS NULL OR entry.agent_identity = %(theme)s::text)
  AND (%(origin)s::text IS NULL OR hermes_is_from(
           hermes_origin_of_memory(entry.origin, entry.metadata), entry.trust, entry.metadata, %(origin)s::text))
  AND (%(since)s::timestamptz IS NULL OR entry.updated_at >= %(since)s::timestamptz)
  AND (%(before)s::timestamptz IS NULL OR entry.updated_at <= %(before)s::timestamptz
       AND (entry.updated_at, entry.id) < (%(before)s::timestamptz, %(before_id)s::bigint))
ORDER BY entry.updated_at DESC, entry.id DESC LIMIT %(limit)s::integer;
