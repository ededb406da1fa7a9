-- Quarantines, the newest first, each with what is in it; id: only this one, null for all.
SELECT made.id, made.at, made.actor, made.theme, made.session_id, made.origin, made.since, made.until, made.is_rule,
       made.undone_at,
       (SELECT count(*) FROM quarantined_turns AS held WHERE held.quarantine_id = made.id),
       (SELECT count(*) FROM quarantined_memories AS held WHERE held.quarantine_id = made.id)
FROM quarantines AS made
WHERE %(id)s::bigint IS NULL OR made.id = %(id)s::bigint
ORDER BY made.id DESC LIMIT %(limit)s::integer;
