-- Edges between sessions with what was noted of them, in the order of their keys, above one.
SELECT agent_identity, id, metadata FROM delegations
WHERE metadata <> '{}'::jsonb AND (agent_identity, id) > (%(theme_after)s, %(id_after)s::bigint)
  AND (%(theme)s::text IS NULL OR agent_identity = %(theme)s)
ORDER BY agent_identity, id LIMIT %(limit)s::integer;
