-- Per theme: these turns, each with the two that were said just before it in its session, the nearest last; without those left out.
SELECT turn.agent_identity, turn.id, turn.content, turn.metadata,
       ARRAY(SELECT earlier.content
             FROM (SELECT before.content, before.ts, before.id FROM conversations AS before
                   WHERE before.agent_identity = %(theme)s::text AND before.session_id = turn.session_id
                     AND before.ts <= turn.ts AND (before.ts, before.id) < (turn.ts, turn.id)
                     AND before.id <> ALL (%(left_out)s::bigint[])
                   ORDER BY before.ts DESC, before.id DESC LIMIT 2) AS earlier
             ORDER BY earlier.ts, earlier.id)
FROM unnest(%(themes)s::text[], %(ids)s::bigint[]) AS asked (theme, id)
JOIN conversations AS turn ON turn.agent_identity = %(theme)s::text AND turn.id = asked.id;
