-- The entries of a theme that is being moved, and the entry of the same content that the other theme has.
WITH same AS MATERIALIZED (
    SELECT id, hermes_digest(content) AS digest FROM memory_entries
    WHERE agent_identity = %(other)s AND target = %(target)s
)
SELECT entry.id, (SELECT same.id FROM same WHERE same.digest = hermes_digest(entry.content))
FROM memory_entries AS entry WHERE entry.agent_identity = %(theme)s AND entry.target = %(target)s ORDER BY entry.id;
