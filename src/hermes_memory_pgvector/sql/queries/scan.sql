-- dead_letters --
-- Rejected records with what they hold, above a number.
SELECT id, payload FROM dead_letters WHERE id > %(id_after)s::bigint ORDER BY id LIMIT %(limit)s::integer;


-- delegations --
-- Edges between sessions with what was noted of them, in the order of their keys, above one.
SELECT agent_identity, id, metadata FROM delegations
WHERE metadata <> '{}'::jsonb AND (agent_identity, id) > (%(theme_after)s, %(id_after)s::bigint)
  AND (%(theme)s::text IS NULL OR agent_identity = %(theme)s)
ORDER BY agent_identity, id LIMIT %(limit)s::integer;


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


-- set_recall --
-- Gives a logged question other words.
UPDATE recall_log SET query = %(query)s WHERE agent_identity = %(theme)s AND id = %(id)s;


-- turns --
-- Turns with what a scan reads of them, in the order of their keys, above one.
SELECT agent_identity, id, content, metadata FROM conversations
WHERE (agent_identity, id) > (%(theme_after)s, %(id_after)s::bigint)
  AND (%(theme)s::text IS NULL OR agent_identity = %(theme)s)
ORDER BY agent_identity, id LIMIT %(limit)s::integer;
