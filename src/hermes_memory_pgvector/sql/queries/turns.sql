-- before --
-- The last two turns stored in each of these sessions, oldest first.
SELECT asked.theme, asked.session_id, earlier.content
FROM unnest(%(themes)b::text[], %(session_ids)b::text[]) AS asked (theme, session_id)
CROSS JOIN LATERAL (
    SELECT content, ts, id FROM conversations
    WHERE agent_identity = asked.theme AND session_id = asked.session_id AND hidden_by IS NULL
    ORDER BY ts DESC LIMIT 2
) AS earlier
ORDER BY earlier.ts, earlier.id;


-- beside --
-- The turn just before and the turn just after each of these, in its own session and theme.
--
-- themes, session_ids, ts, ids (the turns, as four arrays); chars (how much of each text is wanted). The session is
-- named twice, which costs nothing: a planner that believes a theme to have one session might else walk through the
-- theme's timeline instead of the session's.
SELECT hit.place, beside.side, beside.role, beside.ts, left(beside.content, %(chars)s::integer) AS content,
       beside.untrusted
FROM unnest(%(themes)b::text[], %(session_ids)b::text[], %(ts)b::timestamptz[], %(ids)b::bigint[])
     WITH ORDINALITY AS hit (theme, session_id, ts, id, place)
CROSS JOIN LATERAL (
    (SELECT 'before' AS side, c.role, c.ts, c.content, c.untrusted
     FROM conversations AS c
     WHERE c.agent_identity = hit.theme AND c.session_id = hit.session_id
       AND c.session_id BETWEEN hit.session_id AND hit.session_id AND (c.ts, c.id) < (hit.ts, hit.id)
       AND c.hidden_by IS NULL
     ORDER BY c.ts DESC, c.id DESC LIMIT 1)
    UNION ALL
    (SELECT 'after', c.role, c.ts, c.content, c.untrusted FROM conversations AS c
     WHERE c.agent_identity = hit.theme AND c.session_id = hit.session_id
       AND c.session_id BETWEEN hit.session_id AND hit.session_id AND (c.ts, c.id) > (hit.ts, hit.id)
       AND c.hidden_by IS NULL
     ORDER BY c.ts, c.id LIMIT 1)
) AS beside;


-- drop --
-- Deletes turns of a session by their words.
DELETE FROM conversations AS turn
USING unnest(%(digests)s::text[]) AS gone (digest)
WHERE turn.agent_identity = %(theme)s AND turn.session_id = %(session_id)s AND turn.digest = decode(gone.digest, 'hex');


-- insert --
-- Stores turns, each once: the same words by the same role in a session are the same turn within the window, unless the
-- user has taken them back meanwhile, and for a turn from a transcript whenever they were said. Answers the keys of those
-- that are new. No two of them are equal.
--
-- Arrays of equal length, one element per turn: themes, session_ids, roles, contents, ts, metadata (JSON text),
-- parent_session_ids (empty where there is none), digests, ordinals (0: the next),
-- lives (whether it was reported as it was said), befores (what was said just before), home_ids, origins (empty where not known), untrusted. window: in seconds.
INSERT INTO conversations
    (agent_identity, session_id, role, content, ts, metadata, parent_session_id, digest, ordinal, before, home_id, origin,
     untrusted, hidden_by)
SELECT given.theme, given.session_id, given.role, given.content, given.ts, given.metadata::jsonb,
       nullif(given.parent_session_id, ''), given.digest,
       CASE WHEN given.ordinal > 0 THEN given.ordinal ELSE coalesce(known.last, 0) + 1 END,
       CASE WHEN given.by_rule IS NULL THEN given.before ELSE '' END,
       nullif(given.home_id, ''), nullif(given.origin, ''), given.untrusted, given.by_rule
FROM (
    SELECT one.*, (
        SELECT min(rule.id) FROM hidden AS rule
        WHERE rule.is_open AND rule.undone_at IS NULL
          AND hermes_is_within(rule.theme, rule.session_id, rule.origin, rule.since, rule.until, one.theme, one.session_id,
                               hermes_origin_of_turn(nullif(one.origin, ''), one.role), one.untrusted,
                               one.metadata::jsonb, one.ts)) AS by_rule
    FROM unnest(
        %(themes)b::text[], %(session_ids)b::text[], %(roles)b::text[], %(contents)b::text[], %(ts)b::timestamptz[],
        %(metadata)b::text[], %(parent_session_ids)b::text[], %(digests)s::bytea[], %(ordinals)b::integer[], %(lives)s::boolean[],
        %(befores)b::text[], %(home_ids)b::text[], %(origins)b::text[], %(untrusted)b::boolean[]
    ) WITH ORDINALITY AS one (theme, session_id, role, content, ts, metadata, parent_session_id, digest, ordinal, is_live,
                              before, home_id, origin, untrusted, place)
) AS given
-- Looked up together: in a young table the planner may read a session for each turn of it.
LEFT JOIN (
    SELECT turn.agent_identity AS theme, turn.session_id, turn.digest, max(turn.ordinal) AS last,
           array_agg(turn.ts) FILTER (WHERE NOT EXISTS (
               SELECT FROM hidden AS rule WHERE rule.id = turn.hidden_by AND rule.rule = 'undone')) AS times
    FROM conversations AS turn
    WHERE turn.agent_identity = ANY (%(themes)b::text[]) AND turn.session_id = ANY (%(session_ids)b::text[])
      AND turn.digest = ANY (%(digests)s::bytea[])
    GROUP BY turn.agent_identity, turn.session_id, turn.digest
) AS known USING (theme, session_id, digest)
WHERE given.ordinal > 0 OR known.last IS NULL
   OR given.is_live AND NOT EXISTS (
       SELECT FROM unnest(known.times) AS said (ts)
       WHERE abs(extract(epoch FROM said.ts - given.ts)) <= %(window)s::double precision)
ORDER BY given.place
ON CONFLICT (agent_identity, session_id, digest, ordinal) DO NOTHING
RETURNING agent_identity, session_id, encode(digest, 'hex'), ordinal, id;


-- set_before --
-- Says what was said before each of these turns of a theme, which are found by those words, too.
UPDATE conversations AS turn SET before = new.before
FROM unnest(%(ids)s::bigint[], %(befores)s::text[]) AS new (id, before)
WHERE turn.agent_identity = %(theme)s AND turn.id = new.id AND turn.hidden_by IS NULL AND turn.before <> new.before
RETURNING turn.agent_identity, turn.id;


-- with_context --
-- Turns of a session, each with the two that were said just before it, the nearest last.
--
-- changed: these turns, hidden or not, and of each the two that follow it; null for the whole session.
SELECT turn.id,
       ARRAY(SELECT earlier.content
             FROM (SELECT before.content, before.ts, before.id FROM conversations AS before
                   WHERE before.agent_identity = %(theme)s AND before.session_id = turn.session_id
                     AND before.ts <= turn.ts AND (before.ts, before.id) < (turn.ts, turn.id)
                     AND before.hidden_by IS NULL
                   ORDER BY before.ts DESC, before.id DESC LIMIT 2) AS earlier
             ORDER BY earlier.ts, earlier.id)
FROM conversations AS turn
WHERE turn.agent_identity = %(theme)s AND turn.session_id = %(session_id)s AND turn.hidden_by IS NULL
  AND (%(changed)s::bigint[] IS NULL OR turn.id = ANY (%(changed)s::bigint[]) OR turn.id IN (
      SELECT behind.id FROM conversations AS here
      CROSS JOIN LATERAL (SELECT after.id FROM conversations AS after
                          WHERE after.agent_identity = %(theme)s AND after.session_id = here.session_id
                            AND after.ts >= here.ts AND (after.ts, after.id) > (here.ts, here.id) AND after.hidden_by IS NULL
                          ORDER BY after.ts, after.id LIMIT 2) AS behind
      WHERE here.agent_identity = %(theme)s AND here.id = ANY (%(changed)s::bigint[])));
