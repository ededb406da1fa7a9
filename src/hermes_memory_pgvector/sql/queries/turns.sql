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
       beside.is_untrusted
FROM unnest(%(themes)b::text[], %(session_ids)b::text[], %(ts)b::timestamptz[], %(ids)b::bigint[])
     WITH ORDINALITY AS hit (theme, session_id, ts, id, place)
CROSS JOIN LATERAL (
    (SELECT 'before' AS side, c.role, c.ts, c.content, c.trust IS NOT DISTINCT FROM 'untrusted' AS is_untrusted
     FROM conversations AS c
     WHERE c.agent_identity = hit.theme AND c.session_id = hit.session_id
       AND c.session_id BETWEEN hit.session_id AND hit.session_id AND (c.ts, c.id) < (hit.ts, hit.id)
       AND c.hidden_by IS NULL
     ORDER BY c.ts DESC, c.id DESC LIMIT 1)
    UNION ALL
    (SELECT 'after', c.role, c.ts, c.content, c.trust IS NOT DISTINCT FROM 'untrusted' FROM conversations AS c
     WHERE c.agent_identity = hit.theme AND c.session_id = hit.session_id
       AND c.session_id BETWEEN hit.session_id AND hit.session_id AND (c.ts, c.id) > (hit.ts, hit.id)
       AND c.hidden_by IS NULL
     ORDER BY c.ts, c.id LIMIT 1)
) AS beside;


-- drop_vectors --
-- Deletes the vectors of turns, to be made anew.
DELETE FROM {turn_vectors} AS vector
USING unnest(%(themes)s::text[], %(ids)s::bigint[]) AS gone (theme, id)
WHERE vector.agent_identity = gone.theme AND vector.id = gone.id
RETURNING vector.agent_identity, vector.id;


-- following --
-- The two turns that follow each of these places in its session, each with the two turns before it.
--
-- themes, session_ids, ats, ids: the places, as four arrays; no turn need stand there any more.
SELECT DISTINCT ON (turn.agent_identity, turn.id)
       turn.agent_identity, turn.id, turn.number = 1 AS is_next, turn.content, turn.metadata, ARRAY(
           SELECT earlier.content
           FROM (SELECT e.content, e.ts, e.id FROM conversations AS e
                 WHERE e.agent_identity = turn.agent_identity AND e.session_id = turn.session_id
                   AND e.ts <= turn.ts AND (e.ts, e.id) < (turn.ts, turn.id) AND e.hidden_by IS NULL
                 ORDER BY e.ts DESC, e.id DESC LIMIT 2) AS earlier
           ORDER BY earlier.ts, earlier.id
       ) AS before
FROM unnest(%(themes)s::text[], %(session_ids)s::text[], %(ats)s::timestamptz[], %(ids)s::bigint[])
     AS place (theme, session_id, at, id)
CROSS JOIN LATERAL (
    SELECT t.agent_identity, t.session_id, t.id, t.ts, t.content, t.metadata,
           row_number() OVER (ORDER BY t.ts, t.id) AS number
    FROM conversations AS t
    WHERE t.agent_identity = place.theme AND t.session_id = place.session_id
      AND t.ts >= place.at AND (t.ts, t.id) > (place.at, place.id) AND t.hidden_by IS NULL
    ORDER BY t.ts, t.id LIMIT 2
) AS turn
ORDER BY turn.agent_identity, turn.id, turn.number;


-- forget --
-- Takes back turns of a session that the user has undone.
--
-- digests, ordinals: two arrays, one element per turn. The ordinal 0 stands for words that the session has but once: how
-- often they were said before is not known, and a turn that might be another one stays.
DELETE FROM conversations AS turn
USING unnest(%(digests)s::text[], %(ordinals)s::integer[]) AS undone (digest, ordinal)
WHERE turn.agent_identity = %(theme)s AND turn.session_id = %(session_id)s AND turn.ts <= %(at)s::timestamptz
  AND turn.digest = decode(undone.digest, 'hex')
  AND (turn.ordinal = undone.ordinal
       OR undone.ordinal = 0 AND NOT EXISTS (
           SELECT FROM conversations AS other
           WHERE other.agent_identity = %(theme)s AND other.session_id = turn.session_id
             AND other.digest = turn.digest AND other.ordinal <> turn.ordinal));


-- forget_tail --
-- Takes back the last exchanges that a session had stored when it was resumed, and that its transcript no longer has.
--
-- digests, ordinals (two arrays: turns that the transcript still has; the ordinal 0 stands for any saying of the words),
-- at (when the session was resumed), exchanges (how many may go). Only what was stored after each of the
-- kept turns can have been undone; where none of them is stored, nothing goes.
WITH kept AS (
    SELECT turn.ts, turn.id
    FROM unnest(%(digests)s::text[], %(ordinals)s::integer[]) AS still (digest, ordinal)
    JOIN conversations AS turn
      ON turn.agent_identity = %(theme)s AND turn.session_id = %(session_id)s
     AND turn.digest = decode(still.digest, 'hex') AND still.ordinal IN (turn.ordinal, 0)
    ORDER BY turn.ts DESC, turn.id DESC LIMIT 1
), asked AS (
    SELECT turn.ts, turn.id
    FROM conversations AS turn, kept
    WHERE turn.agent_identity = %(theme)s AND turn.session_id = %(session_id)s AND turn.ts <= %(at)s::timestamptz
      AND turn.role = 'user' AND (turn.ts, turn.id) > (kept.ts, kept.id)
    ORDER BY turn.ts DESC, turn.id DESC LIMIT %(exchanges)s::integer
), first_asked AS (
    SELECT ts, id FROM asked ORDER BY ts, id LIMIT 1
)
DELETE FROM conversations AS turn
USING first_asked
WHERE turn.agent_identity = %(theme)s AND turn.session_id = %(session_id)s AND turn.ts <= %(at)s::timestamptz
  AND turn.role IN ('user', 'assistant') AND (turn.ts, turn.id) >= (first_asked.ts, first_asked.id);


-- insert --
-- Stores a batch of turns, each once, and enqueues those that want a vector; returns the place in the batch and the id
-- of those that were new.
--
-- Arrays of equal length, one element per turn: themes, session_ids, roles, contents, ts, metadata (JSON text),
-- parent_session_ids (empty where there is none), digests (hex; empty where it is the content's), ordinals, lexemes (from
-- text.lexemes.lexemes_of; null lets the database work out plainer ones), wishes (whether the turn wants a vector),
-- home_ids, origins, trusts (empty where not known).
WITH batch AS MATERIALIZED (
    SELECT nextval('conversations_id_seq') AS id, given.*
    FROM unnest(
        %(themes)b::text[], %(session_ids)b::text[], %(roles)b::text[], %(contents)b::text[], %(ts)b::timestamptz[],
        %(metadata)b::text[], %(parent_session_ids)b::text[], %(digests)b::text[], %(ordinals)b::integer[],
        %(lexemes)b::tsvector[], %(wishes)b::boolean[], %(home_ids)b::text[], %(origins)b::text[], %(trusts)b::text[]
    ) WITH ORDINALITY AS given (theme, session_id, role, content, ts, metadata, parent_session_id, digest, ordinal,
                                lexemes, wants_vector, home_id, origin, trust, place)
), stored AS (
    INSERT INTO conversations
        (agent_identity, id, session_id, role, content, ts, metadata, parent_session_id, digest, ordinal, lexemes, home_id,
         origin, trust, hidden_by)
    SELECT theme, id, session_id, role, content, ts, metadata::jsonb, nullif(parent_session_id, ''),
           coalesce(decode(nullif(digest, ''), 'hex'), hermes_turn_digest(role, content)), ordinal,
           CASE WHEN held.by_rule IS NULL THEN lexemes ELSE ''::tsvector END,
           nullif(home_id, ''), nullif(origin, ''), nullif(trust, ''), held.by_rule
    FROM batch CROSS JOIN LATERAL (
        SELECT min(rule.id) AS by_rule FROM hidden AS rule
        WHERE rule.is_open AND rule.undone_at IS NULL
          AND hermes_is_within(rule.theme, rule.session_id, rule.origin, rule.since, rule.until, batch.theme, batch.session_id,
                               hermes_origin_of_turn(nullif(batch.origin, ''), batch.role), batch.trust,
                               batch.metadata::jsonb, batch.ts)) AS held
    ORDER BY place
    ON CONFLICT (agent_identity, session_id, digest, ordinal) DO NOTHING
    RETURNING id
), enqueued AS (
    INSERT INTO pending_vectors (agent_identity, kind, id)
    SELECT batch.theme, 'turn', batch.id FROM stored JOIN batch USING (id) WHERE batch.wants_vector
)
SELECT batch.place::integer AS place, batch.id FROM stored JOIN batch USING (id) ORDER BY batch.place;


-- insert_delegation --
-- Notes which subagent session worked for which session.
INSERT INTO delegations (agent_identity, session_id, child_session_id, task_digest, ts, metadata, home_id)
VALUES (%(theme)s, %(session_id)s, %(child_session_id)s, hermes_digest(%(task)s), %(ts)s::timestamptz, %(metadata)s::jsonb,
        nullif(%(home_id)s, ''))
ON CONFLICT (agent_identity, session_id, child_session_id, task_digest) DO NOTHING;


-- insert_later_occurrence --
-- Stores a turn whose key is taken as a later occurrence of the same words, unless the same moment is reported again.
WITH earlier AS (
    SELECT coalesce(max(ordinal), 0) AS last,
           coalesce(bool_or(abs(extract(epoch FROM ts - %(ts)s::timestamptz)) <= %(window)s::double precision), false)
               AS is_known
    FROM conversations
    WHERE agent_identity = %(theme)s AND session_id = %(session_id)s
      AND digest = coalesce(decode(nullif(%(digest)s, ''), 'hex'), hermes_turn_digest(%(role)s, %(content)s))
)
INSERT INTO conversations
    (agent_identity, session_id, role, content, ts, metadata, parent_session_id, digest, ordinal, lexemes, home_id, origin,
     trust, hidden_by)
SELECT %(theme)s, %(session_id)s, %(role)s, %(content)s, %(ts)s::timestamptz, %(metadata)s::jsonb,
       %(parent_session_id)s, coalesce(decode(nullif(%(digest)s, ''), 'hex'), hermes_turn_digest(%(role)s, %(content)s)),
       earlier.last + 1, CASE WHEN held.by_rule IS NULL THEN %(lexemes)s::tsvector ELSE ''::tsvector END,
       nullif(%(home_id)s, ''), %(origin)s::text, %(trust)s::text, held.by_rule
FROM earlier CROSS JOIN (
    SELECT min(rule.id) AS by_rule FROM hidden AS rule
    WHERE rule.is_open AND rule.undone_at IS NULL
      AND hermes_is_within(rule.theme, rule.session_id, rule.origin, rule.since, rule.until, %(theme)s, %(session_id)s,
                           hermes_origin_of_turn(%(origin)s::text, %(role)s), %(trust)s::text, %(metadata)s::jsonb,
                           %(ts)s::timestamptz)) AS held
WHERE NOT earlier.is_known
ON CONFLICT (agent_identity, session_id, digest, ordinal) DO NOTHING
RETURNING id;


-- set_lexemes --
-- Gives turns the lexemes they have now; hidden ones have none.
UPDATE conversations AS turn SET lexemes = new.lexemes::tsvector
FROM unnest(%(themes)s::text[], %(ids)s::bigint[], %(lexemes)s::text[]) AS new (theme, id, lexemes)
WHERE turn.agent_identity = new.theme AND turn.id = new.id AND turn.hidden_by IS NULL
  AND turn.lexemes IS DISTINCT FROM new.lexemes::tsvector
RETURNING turn.agent_identity, turn.id;


-- stored_keys --
-- What identifies the turns stored in these sessions of these themes, and when each was said.
SELECT agent_identity, session_id, encode(digest, 'hex'), ordinal, (extract(epoch FROM ts) * 1000000)::bigint
FROM conversations
WHERE agent_identity = ANY(%(themes)b::text[]) AND session_id = ANY(%(session_ids)b::text[]) AND digest IS NOT NULL;


-- with_context --
-- These turns, each with the two that were said just before it in its session, the nearest last; without those left out.
SELECT turn.agent_identity, turn.id, turn.content, turn.metadata,
       ARRAY(SELECT earlier.content
             FROM (SELECT before.content, before.ts, before.id FROM conversations AS before
                   WHERE before.agent_identity = turn.agent_identity AND before.session_id = turn.session_id
                     AND before.ts <= turn.ts AND (before.ts, before.id) < (turn.ts, turn.id)
                     AND before.hidden_by IS NULL AND before.id <> ALL (%(left_out)s::bigint[])
                   ORDER BY before.ts DESC, before.id DESC LIMIT 2) AS earlier
             ORDER BY earlier.ts, earlier.id)
FROM unnest(%(themes)s::text[], %(ids)s::bigint[]) AS asked (theme, id)
JOIN conversations AS turn ON turn.agent_identity = asked.theme AND turn.id = asked.id;
