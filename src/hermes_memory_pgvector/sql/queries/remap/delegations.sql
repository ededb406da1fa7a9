-- The next delegations of a theme that is being moved, and whether the other theme has the same one.
SELECT edge.id, EXISTS (SELECT FROM delegations AS same
                        WHERE same.agent_identity = %(other)s AND same.session_id = edge.session_id
                          AND same.child_session_id = edge.child_session_id AND same.task_digest = edge.task_digest)
FROM delegations AS edge WHERE edge.agent_identity = %(theme)s ORDER BY edge.id LIMIT %(limit)s::integer;
