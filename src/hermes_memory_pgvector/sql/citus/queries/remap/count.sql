-- How much a theme holds of each kind.
WITH same AS MATERIALIZED (
    SELECT target, hermes_digest(content) AS digest FROM memory_entries WHERE agent_identity = %(other)s
)
SELECT (SELECT count(*) FROM conversations WHERE agent_identity = %(theme)s),
       (SELECT count(*) FROM memory_entries WHERE agent_identity = %(theme)s),
       (SELECT count(*) FROM memory_operations WHERE agent_identity = %(theme)s),
       (SELECT count(*) FROM delegations WHERE agent_identity = %(theme)s),
       (SELECT count(*) FROM recall_log WHERE agent_identity = %(theme)s),
       (SELECT count(*) FROM memory_entries AS entry WHERE entry.agent_identity = %(theme)s
        AND (entry.target, hermes_digest(entry.content)) IN (SELECT same.target, same.digest FROM same)),
       (SELECT count(*) FROM theme_indexes WHERE agent_identity = %(theme)s);
