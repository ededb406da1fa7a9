-- Gives turns the lexemes they have now; muted ones have none.
UPDATE conversations AS turn SET lexemes = new.lexemes::tsvector
FROM unnest(%(themes)s::text[], %(ids)s::bigint[], %(lexemes)s::text[]) AS new (theme, id, lexemes)
WHERE turn.agent_identity = new.theme AND turn.id = new.id AND turn.muted_at IS NULL
  AND turn.lexemes IS DISTINCT FROM new.lexemes::tsvector
RETURNING turn.agent_identity, turn.id;
