-- Keeps memories out of every search that an export says are; answers those that were not.
--
-- Arrays of equal length, one element per memory: themes, ids, muted (times).
UPDATE memory_entries AS memory SET muted_at = given.muted_at, lexemes = ''::tsvector
FROM unnest(%(themes)s::text[], %(ids)s::bigint[], %(muted)s::timestamptz[]) AS given (theme, id, muted_at)
WHERE memory.agent_identity = given.theme AND memory.id = given.id AND memory.muted_at IS NULL
RETURNING memory.agent_identity, memory.id;
