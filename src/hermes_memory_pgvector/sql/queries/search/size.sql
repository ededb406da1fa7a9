-- How many rows of a theme lie within a question's bounds, counted up to a limit?
--
-- kind (memory or turn); theme; narrow (session ids or targets, null for all); since, until (until is exclusive; null for
-- open); limit.
SELECT CASE WHEN %(kind)s::text = 'memory' THEN (
    SELECT count(*) FROM (
        SELECT FROM memory_entries AS entry
        WHERE entry.agent_identity = %(theme)s::text AND (%(narrow)s::text[] IS NULL OR entry.target = ANY (%(narrow)s::text[]))
          AND (%(since)s::timestamptz IS NULL OR entry.updated_at >= %(since)s::timestamptz)
          AND (%(until)s::timestamptz IS NULL OR entry.updated_at < %(until)s::timestamptz)
        LIMIT %(limit)s::integer) AS counted)
ELSE (
    SELECT count(*) FROM (
        SELECT FROM conversations AS turn
        WHERE turn.agent_identity = %(theme)s::text AND (%(narrow)s::text[] IS NULL OR turn.session_id = ANY (%(narrow)s::text[]))
          AND (%(since)s::timestamptz IS NULL OR turn.ts >= %(since)s::timestamptz)
          AND (%(until)s::timestamptz IS NULL OR turn.ts < %(until)s::timestamptz)
        LIMIT %(limit)s::integer) AS counted)
END;
