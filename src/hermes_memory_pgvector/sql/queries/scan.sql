-- dead_letters --
-- Rejected records with what they hold, above a number.
SELECT id, payload FROM dead_letters WHERE id > %(id_after)s::bigint ORDER BY id LIMIT %(limit)s::integer;


-- delegations --
-- Edges between sessions with what was noted of them, in the order of their keys, above one.
SELECT agent_identity, id, metadata FROM delegations
WHERE metadata <> '{}'::jsonb AND (agent_identity, id) > (%(theme_after)s, %(id_after)s::bigint)
  AND (%(theme)s::text IS NULL OR agent_identity = %(theme)s)
ORDER BY agent_identity, id LIMIT %(limit)s::integer;


-- files --
-- The last state of every home's MEMORY.md and USER.md; what is no list of texts was not written by a home.
SELECT home_id, target, entries FROM memory_files
WHERE jsonb_typeof(entries) = 'array' AND NOT jsonb_path_exists(entries, '$[*] ? (@.type() != "string")')
ORDER BY home_id, target;


-- histories --
-- The themes and targets that have memories or a history of them.
SELECT agent_identity, target FROM memory_operations WHERE %(theme)s::text IS NULL OR agent_identity = %(theme)s
UNION
SELECT agent_identity, target FROM memory_entries WHERE %(theme)s::text IS NULL OR agent_identity = %(theme)s
ORDER BY 1, 2;


-- recalls --
-- Logged questions, in the order of their keys, above one.
SELECT agent_identity, id, query FROM recall_log
WHERE query IS NOT NULL AND (agent_identity, id) > (%(theme_after)s, %(id_after)s::bigint)
  AND (%(theme)s::text IS NULL OR agent_identity = %(theme)s)
ORDER BY agent_identity, id LIMIT %(limit)s::integer;


-- set_dead_letter --
-- Gives a rejected record another payload.
UPDATE dead_letters SET payload = %(payload)s WHERE id = %(id)s;


-- set_delegation --
-- Gives an edge between sessions other metadata.
UPDATE delegations SET metadata = %(metadata)s::jsonb WHERE agent_identity = %(theme)s AND id = %(id)s;


-- set_file --
-- Gives a home's file, as last compared, other entries, unless it was compared anew meanwhile.
UPDATE memory_files SET entries = %(entries)s::jsonb
WHERE home_id = %(home_id)s AND target = %(target)s AND entries = %(former)s::jsonb;


-- set_recall --
-- Gives a logged question other words.
UPDATE recall_log SET query = %(query)s WHERE agent_identity = %(theme)s AND id = %(id)s;


-- turns --
-- Turns with what a scan reads of them, in the order of their keys, above one.
SELECT agent_identity, id, content, metadata FROM conversations
WHERE (agent_identity, id) > (%(theme_after)s, %(id_after)s::bigint)
  AND (%(theme)s::text IS NULL OR agent_identity = %(theme)s)
ORDER BY agent_identity, id LIMIT %(limit)s::integer;
