-- How much a theme holds of each kind.
SELECT (SELECT count(*) FROM conversations WHERE agent_identity = %(theme)s),
       (SELECT count(*) FROM memory_entries WHERE agent_identity = %(theme)s),
       (SELECT count(*) FROM memory_operations WHERE agent_identity = %(theme)s),
       (SELECT count(*) FROM delegations WHERE agent_identity = %(theme)s),
       (SELECT count(*) FROM recall_log WHERE agent_identity = %(theme)s),
       (SELECT count(*) FROM memory_entries AS entry WHERE entry.agent_identity = %(theme)s
        AND EXISTS (SELECT FROM memory_entries AS same WHERE same.agent_identity = %(other)s AND same.target = entry.target
                    AND hermes_digest(same.content) = hermes_digest(entry.content))),
       (SELECT count(*) FROM theme_indexes WHERE agent_identity = %(theme)s);
