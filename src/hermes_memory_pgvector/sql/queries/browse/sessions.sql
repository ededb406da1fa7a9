-- The sessions of one theme or of all, last used first, before a place in time: turns, first and last, how it began.
--
-- theme: null for all; since, before, before_id: null for open, the place itself is not included; limit; chars. A session
-- stands where its last turn stands. Only the themes whose newest sessions are the newest of all can hold one of them,
-- so no more than `limit` themes are read, and of those nothing that is older than the oldest of these newest ones.
WITH theme AS MATERIALIZED (
    SELECT DISTINCT agent_identity FROM theme_growth
    WHERE %(theme)s::text IS NULL OR agent_identity = %(theme)s::text
), newest AS MATERIALIZED (
    SELECT theme.agent_identity, last.ts AS at
    FROM theme CROSS JOIN LATERAL (
        SELECT turn.ts FROM conversations AS turn
        WHERE turn.agent_identity = theme.agent_identity
          AND (%(since)s::timestamptz IS NULL OR turn.ts >= %(since)s::timestamptz)
          AND (%(before)s::timestamptz IS NULL OR turn.ts <= %(before)s::timestamptz
               AND (turn.ts, turn.id) < (%(before)s::timestamptz, %(before_id)s::bigint))
          AND turn.id = (SELECT later.id FROM conversations AS later
                         WHERE later.agent_identity = turn.agent_identity AND later.session_id = turn.session_id
                         ORDER BY later.ts DESC, later.id DESC LIMIT 1)
        ORDER BY turn.ts DESC LIMIT 1
    ) AS last
    ORDER BY last.ts DESC FETCH FIRST (%(limit)s::integer) ROWS WITH TIES
), oldest AS MATERIALIZED (
    SELECT CASE WHEN count(*) >= %(limit)s::integer THEN min(newest.at) ELSE '-infinity' END AS at FROM newest
), session AS MATERIALIZED (
    SELECT found.agent_identity, found.session_id, found.id, found.ts AS at
    FROM newest CROSS JOIN oldest CROSS JOIN LATERAL (
        SELECT turn.agent_identity, turn.session_id, turn.id, turn.ts FROM conversations AS turn
        WHERE turn.agent_identity = newest.agent_identity
          AND turn.ts >= oldest.at
          AND (%(since)s::timestamptz IS NULL OR turn.ts >= %(since)s::timestamptz)
          AND (%(before)s::timestamptz IS NULL OR turn.ts <= %(before)s::timestamptz
               AND (turn.ts, turn.id) < (%(before)s::timestamptz, %(before_id)s::bigint))
          AND turn.id = (SELECT later.id FROM conversations AS later
                         WHERE later.agent_identity = turn.agent_identity AND later.session_id = turn.session_id
                         ORDER BY later.ts DESC, later.id DESC LIMIT 1)
        ORDER BY turn.ts DESC, turn.id DESC LIMIT %(limit)s::integer
    ) AS found
    ORDER BY found.ts DESC, found.id DESC LIMIT %(limit)s::integer
)
SELECT session.agent_identity, session.session_id, said.turns, said.first, session.at, said.parent,
       (SELECT left(turn.content, %(chars)s::integer) FROM conversations AS turn
        WHERE turn.agent_identity = session.agent_identity AND turn.session_id = session.session_id
        ORDER BY turn.role <> 'user', turn.ts, turn.id LIMIT 1),
       (SELECT count(*) FROM delegations AS edge
        WHERE edge.agent_identity = session.agent_identity AND edge.session_id = session.session_id),
       session.id
FROM session CROSS JOIN LATERAL (
    SELECT count(*) AS turns, min(turn.ts) AS first, max(turn.parent_session_id) AS parent
    FROM conversations AS turn
    WHERE turn.agent_identity = session.agent_identity AND turn.session_id = session.session_id
) AS said
ORDER BY session.at DESC, session.id DESC;
