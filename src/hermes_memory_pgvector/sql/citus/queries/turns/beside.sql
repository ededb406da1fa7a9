-- Per theme: the turn just before and the turn just after each of these, in its own session and theme.
--
-- themes, session_ids, ts, ids (the turns, as four arrays); chars (how much of each text is wanted). The session is
-- named twice, which costs nothing: a planner that believes a theme to have one session might else walk through the
-- theme's timeline instead of the session's.
SELECT hit.place, beside.side, beside.role, beside.ts, left(beside.content, %(chars)s::integer) AS content,
       beside.is_untrusted
FROM unnest(%(themes)b::text[], %(session_ids)b::text[], %(ts)b::timestamptz[], %(ids)b::bigint[])
     WITH ORDINALITY AS hit (theme, session_id, ts, id, place)
CROSS JOIN LATERAL (
    (SELECT 'before' AS side, c.role, c.ts, c.content, c.trust IS NOT DISTINCT FROM 'untrusted' AS is_untrusted
     FROM conversations AS c
     WHERE c.agent_identity = %(theme)s::text AND c.session_id = hit.session_id
       AND c.session_id BETWEEN hit.session_id AND hit.session_id AND (c.ts, c.id) < (hit.ts, hit.id)
       AND c.muted_at IS NULL
       AND NOT EXISTS (SELECT FROM quarantined_turns AS held
                       WHERE held.agent_identity = c.agent_identity AND held.id = c.id)
     ORDER BY c.ts DESC, c.id DESC LIMIT 1)
    UNION ALL
    (SELECT 'after', c.role, c.ts, c.content, c.trust IS NOT DISTINCT FROM 'untrusted' FROM conversations AS c
     WHERE c.agent_identity = %(theme)s::text AND c.session_id = hit.session_id
       AND c.session_id BETWEEN hit.session_id AND hit.session_id AND (c.ts, c.id) > (hit.ts, hit.id)
       AND c.muted_at IS NULL
       AND NOT EXISTS (SELECT FROM quarantined_turns AS held
                       WHERE held.agent_identity = c.agent_identity AND held.id = c.id)
     ORDER BY c.ts, c.id LIMIT 1)
) AS beside
WHERE hit.theme = %(theme)s::text;
