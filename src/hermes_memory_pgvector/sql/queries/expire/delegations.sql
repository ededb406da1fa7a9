-- Delegations that are older than their theme keeps its turns; the options are those of expire/turns.
SELECT edge.agent_identity, edge.id
FROM delegations AS edge
LEFT JOIN unnest(%(themes)s::text[], %(cuts)s::timestamptz[]) AS own (theme, cut) ON own.theme = edge.agent_identity
WHERE edge.ts < CASE WHEN own.theme IS NULL THEN %(cut)s::timestamptz ELSE own.cut END
  AND (%(among)s::text[] IS NULL OR edge.agent_identity = ANY (%(among)s::text[]))
  AND (%(homes)s::text[] IS NULL OR edge.home_id = ANY (%(homes)s::text[])
       OR edge.home_id IS NULL AND (%(homeless)s::text[] IS NULL OR edge.agent_identity = ANY (%(homeless)s::text[])))
LIMIT %(limit)s::integer;
