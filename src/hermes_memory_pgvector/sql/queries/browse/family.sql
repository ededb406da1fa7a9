-- The sessions that belong together with one of these, in a theme: each with what it goes on from and how, or whose
-- subagent it was; turns, first and last, how it began.
--
-- theme, session_ids, most, chars. A subagent that the host kept from the memory has no turns of its own.
WITH RECURSIVE family AS (
    SELECT given.session_id FROM unnest(%(session_ids)s::text[]) AS given (session_id)
    UNION
    SELECT link.session_id FROM family CROSS JOIN LATERAL (
        SELECT turn.parent_session_id AS session_id FROM conversations AS turn
        WHERE turn.agent_identity = %(theme)s AND turn.session_id = family.session_id AND turn.parent_session_id IS NOT NULL
          AND turn.metadata->>'lineage' IS DISTINCT FROM 'resume' AND turn.metadata->>'lineage' IS DISTINCT FROM 'new'
        UNION
        SELECT turn.session_id FROM conversations AS turn
        WHERE turn.agent_identity = %(theme)s AND turn.parent_session_id = family.session_id
          AND turn.metadata->>'lineage' IS DISTINCT FROM 'resume' AND turn.metadata->>'lineage' IS DISTINCT FROM 'new'
        UNION
        SELECT edge.child_session_id FROM delegations AS edge
        WHERE edge.agent_identity = %(theme)s AND edge.session_id = family.session_id AND edge.child_session_id <> ''
        UNION
        SELECT edge.session_id FROM delegations AS edge
        WHERE edge.agent_identity = %(theme)s AND edge.child_session_id = family.session_id AND family.session_id <> ''
    ) AS link
), members AS (
    SELECT family.session_id FROM family LIMIT %(most)s::integer
)
SELECT members.session_id, said.turns, said.first, said.last, lineage.parent, lineage.kind, edge.session_id, edge.ts,
       (SELECT left(turn.content, %(chars)s::integer) FROM conversations AS turn
        WHERE turn.agent_identity = %(theme)s AND turn.session_id = members.session_id
        ORDER BY turn.role <> 'user', turn.ts, turn.id LIMIT 1)
FROM members
CROSS JOIN LATERAL (
    SELECT count(*) AS turns, min(turn.ts) AS first, max(turn.ts) AS last FROM conversations AS turn
    WHERE turn.agent_identity = %(theme)s AND turn.session_id = members.session_id
) AS said
LEFT JOIN LATERAL (
    SELECT turn.parent_session_id AS parent, coalesce(turn.metadata->>'lineage', '') AS kind FROM conversations AS turn
    WHERE turn.agent_identity = %(theme)s AND turn.session_id = members.session_id AND turn.parent_session_id IS NOT NULL
    ORDER BY coalesce(turn.metadata->>'lineage', '') IN ('resume', 'new'), turn.ts, turn.id LIMIT 1
) AS lineage ON true
LEFT JOIN LATERAL (
    SELECT edge.session_id, edge.ts FROM delegations AS edge
    WHERE edge.agent_identity = %(theme)s AND edge.child_session_id = members.session_id AND members.session_id <> ''
    ORDER BY edge.ts, edge.id LIMIT 1
) AS edge ON true
ORDER BY coalesce(said.first, edge.ts), members.session_id;
