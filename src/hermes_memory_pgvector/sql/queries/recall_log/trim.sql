-- Keeps the newest answers of these themes in the log, so many of each.
DELETE FROM recall_log AS log
USING unnest(%(themes)s::text[]) AS given (theme)
WHERE log.agent_identity = given.theme
  AND log.id <= (SELECT older.id FROM recall_log AS older
                 WHERE older.agent_identity = given.theme ORDER BY older.id DESC OFFSET %(keep)s::integer LIMIT 1);
