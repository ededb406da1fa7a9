-- add_sources --
-- Notes which homes hold which entries, unless they are known to.
INSERT INTO memory_sources (agent_identity, entry_id, home_id, origin, since)
SELECT %(theme)s, held.id, held.home_id, held.origin, held.since
FROM unnest(%(ids)s::bigint[], %(home_ids)s::text[], %(origins)s::text[], %(sinces)s::timestamptz[])
     AS held (id, home_id, origin, since)
ON CONFLICT (agent_identity, entry_id, home_id) DO NOTHING;


-- agents --
-- The agents of a theme that is being moved become those of the other one; where a home has worked for both, they are one.
WITH moved AS (
    DELETE FROM agents AS agent WHERE agent.agent_identity = %(theme)s RETURNING *
)
INSERT INTO agents AS known (agent_identity, home_id, first_seen, last_seen, host, kind, version, sessions, turns, memories, recalls)
SELECT %(other)s, moved.home_id, moved.first_seen, moved.last_seen, moved.host, moved.kind, moved.version, moved.sessions,
       moved.turns, moved.memories, moved.recalls
FROM moved
ON CONFLICT (agent_identity, home_id) DO UPDATE SET
    first_seen = least(known.first_seen, excluded.first_seen), last_seen = greatest(known.last_seen, excluded.last_seen),
    sessions = known.sessions + excluded.sessions, turns = known.turns + excluded.turns,
    memories = known.memories + excluded.memories, recalls = known.recalls + excluded.recalls;


-- alias --
-- Where a theme was moved to, and whether that is finished.
SELECT new, finished_at FROM theme_aliases WHERE old = %(old)s;


-- begin --
-- From now on, what is written to one theme goes to another; a move that was begun goes on.
INSERT INTO theme_aliases (old, new) VALUES (%(old)s, %(new)s)
ON CONFLICT (old) DO UPDATE SET new = excluded.new, finished_at = NULL;


-- count --
-- How much a theme holds of each kind.
SELECT (SELECT count(*) FROM conversations WHERE agent_identity = %(theme)s),
       (SELECT count(*) FROM memory_entries WHERE agent_identity = %(theme)s),
       (SELECT count(*) FROM memory_operations WHERE agent_identity = %(theme)s),
       (SELECT count(*) FROM delegations WHERE agent_identity = %(theme)s),
       (SELECT count(*) FROM recall_log WHERE agent_identity = %(theme)s),
       (SELECT count(*) FROM memory_entries AS entry WHERE entry.agent_identity = %(theme)s
        AND EXISTS (SELECT FROM memory_entries AS same WHERE same.agent_identity = %(other)s AND same.target = entry.target
                    AND hermes_digest(same.content) = hermes_digest(entry.content))),
       (SELECT count(*) FROM theme_indexes WHERE agent_identity = %(theme)s);


-- delegations --
-- The next delegations of a theme that is being moved, and whether the other theme has the same one.
SELECT edge.id, EXISTS (SELECT FROM delegations AS same
                        WHERE same.agent_identity = %(other)s AND same.session_id = edge.session_id
                          AND same.child_session_id = edge.child_session_id AND same.task_digest = edge.task_digest)
FROM delegations AS edge WHERE edge.agent_identity = %(theme)s ORDER BY edge.id LIMIT %(limit)s::integer;


-- entries --
-- The entries of a theme that is being moved, and the entry of the same content that the other theme has.
SELECT entry.id, (SELECT same.id FROM memory_entries AS same
                  WHERE same.agent_identity = %(other)s AND same.target = entry.target
                    AND hermes_digest(same.content) = hermes_digest(entry.content))
FROM memory_entries AS entry WHERE entry.agent_identity = %(theme)s AND entry.target = %(target)s ORDER BY entry.id;


-- finish --
-- Everything has been moved.
UPDATE theme_aliases SET finished_at = now() WHERE old = %(old)s;


-- lock --
-- One theme is moved at a time, until the transaction ends.
SELECT pg_advisory_xact_lock(hashtextextended('hermes-remap', 7));


-- move_delegations --
-- Gives delegations another theme.
UPDATE delegations AS edge SET agent_identity = %(other)s
FROM unnest(%(ids)s::bigint[]) AS moved (id)
WHERE edge.agent_identity = %(theme)s AND edge.id = moved.id;


-- move_entries --
-- Gives entries another theme; their vectors go with them.
UPDATE memory_entries AS entry SET agent_identity = %(other)s
FROM unnest(%(ids)s::bigint[]) AS moved (id)
WHERE entry.agent_identity = %(theme)s AND entry.id = moved.id;


-- move_operations --
-- Gives the operations of a theme and target another theme, by their keys.
UPDATE memory_operations AS operation SET agent_identity = %(other)s
FROM unnest(%(orders)s::bigint[], %(writers)s::text[], %(seqs)s::bigint[], %(parts)s::integer[])
     AS moved (order_us, writer, seq, part)
WHERE operation.agent_identity = %(theme)s AND operation.target = %(target)s
  AND operation.order_us = moved.order_us AND operation.writer = moved.writer AND operation.seq = moved.seq
  AND operation.part = moved.part;


-- move_pending --
-- What waits for a vector goes with its rows.
UPDATE pending_vectors AS pending SET agent_identity = %(other)s
FROM unnest(%(ids)s::bigint[]) AS moved (id)
WHERE pending.agent_identity = %(theme)s AND pending.kind = %(kind)s AND pending.id = moved.id;


-- move_recalls --
-- Gives logged recalls another theme.
UPDATE recall_log AS logged SET agent_identity = %(other)s
FROM unnest(%(ids)s::bigint[]) AS moved (id)
WHERE logged.agent_identity = %(theme)s AND logged.id = moved.id;


-- move_turns --
-- Gives turns another theme, and the place their words have there; their vectors go with them.
UPDATE conversations AS turn SET agent_identity = %(other)s, ordinal = moved.ordinal
FROM unnest(%(ids)s::bigint[], %(ordinals)s::integer[]) AS moved (id, ordinal)
WHERE turn.agent_identity = %(theme)s AND turn.id = moved.id;


-- recalls --
-- The next logged recalls of a theme that is being moved.
SELECT logged.id FROM recall_log AS logged WHERE logged.agent_identity = %(theme)s ORDER BY logged.id LIMIT %(limit)s::integer;


-- redirect --
-- Themes that were merged into this one go where it goes.
UPDATE theme_aliases SET new = %(new)s WHERE new = %(old)s AND old <> %(new)s;


-- revive --
-- A theme that was merged into another one is a theme again.
DELETE FROM theme_aliases WHERE old = %(theme)s;


-- sources --
-- Which homes hold these entries of a theme.
SELECT source.entry_id, source.home_id, source.origin, source.since
FROM memory_sources AS source
WHERE source.agent_identity = %(theme)s AND source.entry_id = ANY (%(ids)s::bigint[]);


-- turns --
-- The next turns of a theme that is being moved, each with what the other theme has under its key: whether it is the same
-- saying (no more than `window` seconds apart; null when the key is free), and how often the words were said there.
--
-- All occurrences of the same words in a session come together, so none is compared with one that was moved before.
WITH page AS MATERIALIZED (
    SELECT turn.id, turn.session_id, turn.digest FROM conversations AS turn
    WHERE turn.agent_identity = %(theme)s
    ORDER BY turn.id LIMIT %(limit)s::integer
), moving AS MATERIALIZED (
    SELECT turn.id
    FROM (SELECT DISTINCT page.session_id, page.digest FROM page WHERE page.digest IS NOT NULL) AS said
    CROSS JOIN LATERAL (
        SELECT each.id FROM conversations AS each
        WHERE each.agent_identity = %(theme)s AND each.session_id = said.session_id AND each.digest = said.digest
    ) AS turn
    UNION
    SELECT page.id FROM page
)
SELECT turn.id, turn.ordinal,
       (SELECT abs(extract(epoch FROM same.ts - turn.ts)) <= %(window)s::double precision
        FROM conversations AS same
        WHERE same.agent_identity = %(other)s AND same.session_id = turn.session_id
          AND same.digest = turn.digest AND same.ordinal = turn.ordinal),
       (SELECT max(same.ordinal) FROM conversations AS same
        WHERE same.agent_identity = %(other)s AND same.session_id = turn.session_id AND same.digest = turn.digest),
       turn.session_id, turn.digest
FROM moving JOIN conversations AS turn ON turn.agent_identity = %(theme)s AND turn.id = moving.id
ORDER BY turn.id;
