-- Brings other names of themes here; a name that somebody uses here, or that leads elsewhere already, stays as it is.
INSERT INTO theme_aliases (old, new, since, finished_at)
SELECT given.old, coalesce(onward.new, given.new), given.since, given.finished_at
FROM unnest(%(olds)s::text[], %(news)s::text[], %(since)s::timestamptz[], %(finished)s::timestamptz[])
    AS given (old, new, since, finished_at)
LEFT JOIN theme_aliases AS onward ON onward.old = given.new
WHERE coalesce(onward.new, given.new) <> given.old
  AND given.old NOT IN (
      SELECT turn.agent_identity FROM conversations AS turn WHERE turn.agent_identity = ANY (%(olds)s::text[]))
  AND given.old NOT IN (
      SELECT entry.agent_identity FROM memory_entries AS entry WHERE entry.agent_identity = ANY (%(olds)s::text[]))
ON CONFLICT (old) DO NOTHING
RETURNING old, new;
