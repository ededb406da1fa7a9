-- Per theme: the two turns that follow each of these places in its session, each with the two turns before it.
--
-- themes, session_ids, ats, ids: the places, as four arrays; no turn need stand there any more.
SELECT DISTINCT ON (turn.agent_identity, turn.id)
       turn.agent_identity, turn.id, turn.number = 1 AS is_next, turn.content, turn.metadata, ARRAY(
           SELECT earlier.content
           FROM (SELECT e.content, e.ts, e.id FROM conversations AS e
                 WHERE e.agent_identity = %(theme)s::text AND e.session_id = turn.session_id
                   AND e.ts <= turn.ts AND (e.ts, e.id) < (turn.ts, turn.id)
                 ORDER BY e.ts DESC, e.id DESC LIMIT 2) AS earlier
           ORDER BY earlier.ts, earlier.id
       ) AS before
FROM unnest(%(themes)s::text[], %(session_ids)s::text[], %(ats)s::timestamptz[], %(ids)s::bigint[])
     AS place (theme, session_id, at, id)
CROSS JOIN LATERAL (
    SELECT t.agent_identity, t.session_id, t.id, t.ts, t.content, t.metadata,
           row_number() OVER (ORDER BY t.ts, t.id) AS number
    FROM conversations AS t
    WHERE t.agent_identity = %(theme)s::text AND t.session_id = place.session_id
      AND t.ts >= place.at AND (t.ts, t.id) > (place.at, place.id)
    ORDER BY t.ts, t.id LIMIT 2
) AS turn
ORDER BY turn.agent_identity, turn.id, turn.number;
