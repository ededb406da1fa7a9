-- Turns that are older than the rule of their theme, and belong to these homes, the oldest first.
--
-- themes, cuts: rules of single themes; cut: that of all others; among, homes, homeless: see queries/expire/turns.sql.
SELECT turn.agent_identity, turn.id
FROM conversations AS turn
LEFT JOIN unnest(%(themes)s::text[], %(cuts)s::timestamptz[]) AS own (theme, cut) ON own.theme = turn.agent_identity
WHERE turn.ts < CASE WHEN own.theme IS NULL THEN %(cut)s::timestamptz ELSE own.cut END
  AND (%(among)s::text[] IS NULL OR turn.agent_identity = ANY (%(among)s::text[]))
  AND (%(homes)s::text[] IS NULL OR turn.home_id = ANY (%(homes)s::text[])
       OR turn.home_id IS NULL AND (%(homeless)s::text[] IS NULL OR turn.agent_identity = ANY (%(homeless)s::text[])))
ORDER BY turn.ts LIMIT %(limit)s::integer;
