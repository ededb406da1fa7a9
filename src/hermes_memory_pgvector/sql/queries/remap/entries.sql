-- The entries of a theme that is being moved, and the entry of the same content that the other theme has.
SELECT entry.id, (SELECT same.id FROM memory_entries AS same
                  WHERE same.agent_identity = %(other)s AND same.target = entry.target
                    AND hermes_digest(same.content) = hermes_digest(entry.content))
FROM memory_entries AS entry WHERE entry.agent_identity = %(theme)s AND entry.target = %(target)s ORDER BY entry.id;
