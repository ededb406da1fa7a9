-- The next delegations of a theme that is being moved, and whether the other theme has the same one.
WITH same AS MATERIALIZED (
    SELECT session_id, child_session_id, task_digest FROM delegations WHERE agent_identity = %(other)s
)
SELECT edge.id, EXISTS (SELECT FROM same
                        WHERE same.session_id = edge.session_id AND same.child_session_id = edge.child_session_id
                          AND same.task_digest = edge.task_digest)
FROM delegations AS edge WHERE edge.agent_identity = %(theme)s ORDER BY edge.id LIMIT %(limit)s::integer;
