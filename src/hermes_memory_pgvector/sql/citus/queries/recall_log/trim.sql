-- Per theme: keeps the newest answers of these themes in the log, so many of each.
DELETE FROM recall_log AS log
USING unnest(%(themes)s::text[]) AS given (theme)
WHERE log.agent_identity = %(theme)s::text AND log.id <= (
    SELECT older.id FROM recall_log AS older
    WHERE older.agent_identity = %(theme)s::text
    ORDER BY older.id DESC OFFSET greatest(%(keep)s::integer, 100) LIMIT 1);
