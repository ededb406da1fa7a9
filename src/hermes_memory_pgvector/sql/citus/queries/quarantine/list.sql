-- Quarantines, the newest first, each with what is in it; id: only this one, null for all.
SELECT made.id, made.at, made.actor, made.theme, made.session_id, made.origin, made.since, made.until, made.is_rule,
       made.undone_at, coalesce(turns.count, 0), coalesce(memories.count, 0)
FROM quarantines AS made
LEFT JOIN (SELECT quarantine_id, count(*) AS count FROM quarantined_turns GROUP BY 1) AS turns ON turns.quarantine_id = made.id
LEFT JOIN (SELECT quarantine_id, count(*) AS count FROM quarantined_memories GROUP BY 1) AS memories
       ON memories.quarantine_id = made.id
WHERE %(id)s::bigint IS NULL OR made.id = %(id)s::bigint
ORDER BY made.id DESC LIMIT %(limit)s::integer;
