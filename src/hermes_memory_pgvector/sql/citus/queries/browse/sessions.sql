-- The sessions of one theme or of all, last used first, before a place in time: turns, first and last, how it began.
--
-- theme: null for all; since, before, before_id: null for open, the place itself is not included; limit; chars. A session
-- stands where its last turn stands. Only the themes whose newest sessions are the newest of all can hold one of them,
-- so no more than `limit` themes are read, and of those nothing that is older than the oldest of these newest ones.
SELECT session.agent_identity, session.session_id, session.turns, session.first, session.at, session.parent, session.opening,
       coalesce(edges.count, 0), session.id
FROM (
    SELECT turn.agent_identity, turn.session_id, count(*) AS turns, min(turn.ts) AS first, max(turn.ts) AS at,
           max(turn.parent_session_id) AS parent,
           (array_agg(left(turn.content, %(chars)s::integer) ORDER BY turn.role <> 'user', turn.ts, turn.id))[1] AS opening,
           (array_agg(turn.id ORDER BY turn.ts DESC, turn.id DESC))[1] AS id
    FROM conversations AS turn
    WHERE %(theme)s::text IS NULL OR turn.agent_identity = %(theme)s::text
    GROUP BY turn.agent_identity, turn.session_id
) AS session
LEFT JOIN (
    SELECT edge.agent_identity, edge.session_id, count(*) AS count FROM delegations AS edge
    WHERE %(theme)s::text IS NULL OR edge.agent_identity = %(theme)s::text
    GROUP BY edge.agent_identity, edge.session_id
) AS edges ON edges.agent_identity = session.agent_identity AND edges.session_id = session.session_id
WHERE (%(since)s::timestamptz IS NULL OR session.at >= %(since)s::timestamptz)
  AND (%(before)s::timestamptz IS NULL OR session.at <= %(before)s::timestamptz
       AND (session.at, session.id) < (%(before)s::timestamptz, %(before_id)s::bigint))
ORDER BY session.at DESC, session.id DESC LIMIT %(limit)s::integer;
