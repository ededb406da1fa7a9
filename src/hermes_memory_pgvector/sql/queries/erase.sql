-- aliases_of --
-- The former names of a theme.
SELECT old FROM theme_aliases WHERE new = %(theme)s ORDER BY old;


-- begin --
-- Begins a receipt; nothing that was said later than its time is forgotten. The server's clock says when that is: the
-- operator's may be far ahead, and what is said until then is new.
INSERT INTO erasure_receipts (forgotten_at, actor, home_id, named, request, horizon)
VALUES (clock_timestamp(), %(actor)s, %(home_id)s, %(named)s::text[], %(request)s::bytea, %(horizon)s::bigint[])
RETURNING id, forgotten_at;


-- change_dead_letter --
-- Gives a rejected record a payload without what was forgotten, unless it has changed meanwhile.
UPDATE dead_letters SET payload = %(payload)s WHERE id = %(id)s AND payload = %(was)s;


-- change_operation --
-- Gives an operation another meaning that needs fewer words.
UPDATE memory_operations
SET action = %(action)s, content = %(content)s, old_text = %(old_text)s, previous = %(previous)s, metadata = %(metadata)s::jsonb
WHERE agent_identity = %(theme)s AND target = %(target)s AND order_us = %(order_us)s AND writer = %(writer)s
  AND seq = %(seq)s AND part = %(part)s;


-- count_turns --
-- How many turns somebody names, by theme; the options are those of find_turns.
SELECT turn.agent_identity, count(*), count(DISTINCT turn.session_id), min(turn.ts), max(turn.ts)
FROM conversations AS turn
WHERE (%(theme)s::text IS NULL OR turn.agent_identity = %(theme)s::text)
  AND (%(session_id)s::text IS NULL OR turn.session_id = %(session_id)s::text)
  AND (%(before)s::timestamptz IS NULL OR turn.ts < %(before)s::timestamptz)
  AND (%(ids)s::bigint[] IS NULL OR turn.id = ANY (%(ids)s::bigint[]))
  AND (%(needles)s::text[] IS NULL
       OR EXISTS (SELECT FROM unnest(%(needles)s::text[]) AS one (needle)
                  WHERE strpos(lower(turn.content), lower(one.needle)) > 0))
  AND (%(authors)s::text[] IS NULL
       OR EXISTS (SELECT FROM jsonb_path_query(turn.metadata, '$.author.*') AS value
                  WHERE lower(value #>> '{}') = ANY (%(authors)s::text[])))
  AND (turn.ts <= %(cut)s::timestamptz OR turn.id <= %(horizon)s::bigint)
GROUP BY 1 ORDER BY 2 DESC, 1;


-- dead_letters --
-- Rejected records with what they hold, above a number.
SELECT id, payload FROM dead_letters WHERE id > %(after_id)s ORDER BY id LIMIT %(limit)s::integer;


-- delegations_of --
-- The delegations behind these tasks, which were delegated in these sessions.
SELECT edge.agent_identity, edge.id
FROM unnest(%(themes)s::text[], %(session_ids)s::text[], %(tasks)s::text[]) AS given (theme, session_id, task)
JOIN delegations AS edge ON edge.agent_identity = given.theme AND edge.session_id = given.session_id
 AND edge.task_digest = hermes_digest(given.task);


-- drop_dead_letter --
-- Deletes a record of which nothing is left, whether it was rejected or waits for a theme.
DELETE FROM dead_letters WHERE id = %(id)s;


-- drop_delegations --
-- Deletes delegations by their keys.
DELETE FROM delegations AS edge
USING unnest(%(themes)s::text[], %(ids)s::bigint[]) AS gone (theme, id)
WHERE edge.agent_identity = gone.theme AND edge.id = gone.id;


-- drop_operations --
-- Deletes operations of one theme by their keys.
DELETE FROM memory_operations AS operation
USING unnest(%(orders)s::bigint[], %(writers)s::text[], %(seqs)s::bigint[], %(parts)s::integer[])
      AS gone (order_us, writer, seq, part)
WHERE operation.agent_identity = %(theme)s AND operation.target = %(target)s
  AND operation.order_us = gone.order_us AND operation.writer = gone.writer AND operation.seq = gone.seq
  AND operation.part = gone.part;


-- drop_pending --
-- Takes rows that are gone off the queue for vectors.
DELETE FROM pending_vectors AS pending
USING unnest(%(themes)s::text[], %(kinds)s::text[], %(ids)s::bigint[]) AS gone (theme, kind, id)
WHERE pending.agent_identity = gone.theme AND pending.kind = gone.kind AND pending.id = gone.id;


-- drop_recalls --
-- Deletes logged recalls by their keys.
DELETE FROM recall_log AS logged
USING unnest(%(themes)s::text[], %(ids)s::bigint[]) AS gone (theme, id)
WHERE logged.agent_identity = gone.theme AND logged.id = gone.id;


-- drop_turns --
-- Deletes turns by their keys; their vectors go with them.
DELETE FROM conversations AS turn
USING unnest(%(themes)s::text[], %(ids)s::bigint[]) AS gone (theme, id)
WHERE turn.agent_identity = gone.theme AND turn.id = gone.id;


-- find_delegations --
-- Delegations that somebody names by theme, session and time; null for any.
SELECT edge.agent_identity, edge.id
FROM delegations AS edge
WHERE (%(theme)s::text IS NULL OR edge.agent_identity = %(theme)s::text)
  AND (%(session_id)s::text IS NULL OR %(session_id)s::text IN (edge.session_id, edge.child_session_id))
  AND (%(before)s::timestamptz IS NULL OR edge.ts < %(before)s::timestamptz)
  AND (edge.ts <= %(cut)s::timestamptz OR edge.id <= %(horizon)s::bigint)
LIMIT %(limit)s::integer;


-- find_histories --
-- The histories of memories (theme and target) that hold something somebody names; the options are those of find_memories;
-- above: only operations with a higher number. Metadata count, except names of sessions.
SELECT DISTINCT operation.agent_identity, operation.target
FROM memory_operations AS operation
WHERE (%(theme)s::text IS NULL OR operation.agent_identity = %(theme)s::text)
  AND (%(session_id)s::text IS NULL OR operation.metadata ->> 'session_id' = %(session_id)s::text)
  AND (%(before)s::timestamptz IS NULL OR operation.at < %(before)s::timestamptz)
  AND (%(needles)s::text[] IS NULL
       OR EXISTS (SELECT FROM unnest(%(needles)s::text[]) AS one (needle)
                  WHERE strpos(lower(operation.content), lower(one.needle)) > 0
                     OR strpos(lower(operation.old_text), lower(one.needle)) > 0
                     OR strpos(lower(operation.previous), lower(one.needle)) > 0
                     OR strpos(lower((operation.metadata - %(names)s::text[])::text), lower(one.needle)) > 0))
  AND operation.id > %(above)s::bigint
  AND (operation.at <= %(cut)s::timestamptz OR operation.id <= %(horizon)s::bigint)
ORDER BY 1, 2;


-- find_memories --
-- Entries that somebody names.
--
-- theme, session_id (in which they were written), before, ids: null for any. needles: as in find_turns. cut: none newer.
SELECT entry.agent_identity, entry.target, entry.id, entry.content, entry.updated_at
FROM memory_entries AS entry
WHERE (%(theme)s::text IS NULL OR entry.agent_identity = %(theme)s::text)
  AND (%(session_id)s::text IS NULL OR entry.metadata ->> 'session_id' = %(session_id)s::text)
  AND (%(before)s::timestamptz IS NULL OR entry.updated_at < %(before)s::timestamptz)
  AND (%(ids)s::bigint[] IS NULL OR entry.id = ANY (%(ids)s::bigint[]))
  AND (%(needles)s::text[] IS NULL
       OR EXISTS (SELECT FROM unnest(%(needles)s::text[]) AS one (needle)
                  WHERE strpos(lower(entry.content), lower(one.needle)) > 0))
  AND (entry.updated_at <= %(cut)s::timestamptz OR entry.id <= %(horizon)s::bigint)
ORDER BY entry.agent_identity, entry.target, entry.id;


-- find_recalls --
-- Logged recalls of a theme, a session or a time, or whose question holds what somebody names; null for any.
SELECT logged.agent_identity, logged.id
FROM recall_log AS logged
WHERE (%(theme)s::text IS NULL OR logged.agent_identity = %(theme)s::text)
  AND (%(session_id)s::text IS NULL OR logged.session_id = %(session_id)s::text)
  AND (%(before)s::timestamptz IS NULL OR logged.at < %(before)s::timestamptz)
  AND (%(needles)s::text[] IS NULL
       OR EXISTS (SELECT FROM unnest(%(needles)s::text[]) AS one (needle)
                  WHERE strpos(lower(logged.query), lower(one.needle)) > 0))
  AND (logged.at <= %(cut)s::timestamptz OR logged.id <= %(horizon)s::bigint)
ORDER BY logged.agent_identity, logged.id
LIMIT %(limit)s::integer;


-- find_stamped --
-- Rows whose metadata contain what somebody names, names of sessions apart: table, theme and number.
(SELECT 'conversations', turn.agent_identity, turn.id
 FROM conversations AS turn
 WHERE (%(theme)s::text IS NULL OR turn.agent_identity = %(theme)s::text)
   AND (%(session_id)s::text IS NULL OR turn.session_id = %(session_id)s::text)
   AND (%(before)s::timestamptz IS NULL OR turn.ts < %(before)s::timestamptz)
   AND (turn.ts <= %(cut)s::timestamptz OR turn.id <= %(turn_horizon)s::bigint)
   AND EXISTS (SELECT FROM unnest(%(needles)s::text[]) AS one (needle)
               WHERE strpos(lower((turn.metadata - %(names)s::text[])::text), lower(one.needle)) > 0)
 LIMIT %(limit)s::integer)
UNION ALL
(SELECT 'memory_entries', entry.agent_identity, entry.id
 FROM memory_entries AS entry
 WHERE (%(theme)s::text IS NULL OR entry.agent_identity = %(theme)s::text)
   AND (%(session_id)s::text IS NULL OR entry.metadata ->> 'session_id' = %(session_id)s::text)
   AND (%(before)s::timestamptz IS NULL OR entry.updated_at < %(before)s::timestamptz)
   AND (entry.updated_at <= %(cut)s::timestamptz OR entry.id <= %(memory_horizon)s::bigint)
   AND EXISTS (SELECT FROM unnest(%(needles)s::text[]) AS one (needle)
               WHERE strpos(lower((entry.metadata - %(names)s::text[])::text), lower(one.needle)) > 0)
 LIMIT %(limit)s::integer)
UNION ALL
(SELECT 'delegations', edge.agent_identity, edge.id
 FROM delegations AS edge
 WHERE (%(theme)s::text IS NULL OR edge.agent_identity = %(theme)s::text)
   AND (%(session_id)s::text IS NULL OR edge.session_id = %(session_id)s::text)
   AND (%(before)s::timestamptz IS NULL OR edge.ts < %(before)s::timestamptz)
   AND (edge.ts <= %(cut)s::timestamptz OR edge.id <= %(edge_horizon)s::bigint)
   AND EXISTS (SELECT FROM unnest(%(needles)s::text[]) AS one (needle)
               WHERE strpos(lower((edge.metadata - %(names)s::text[])::text), lower(one.needle)) > 0)
 LIMIT %(limit)s::integer);


-- find_turns --
-- Turns that somebody names, in the order of their keys.
--
-- theme, session_id, before, ids: null for any. needles: texts, one of which their words contain, in any spelling of case;
-- null for any. authors: what their metadata name as the author; null for any. cut: none that was said later, unless it was
-- there before the request, with a number no higher than horizon.
SELECT turn.agent_identity, turn.id, turn.session_id, turn.role, turn.content, turn.ts, turn.metadata, turn.ordinal,
       encode(coalesce(turn.digest, hermes_turn_digest(turn.role, turn.content)), 'hex')
FROM conversations AS turn
WHERE (%(theme)s::text IS NULL OR turn.agent_identity = %(theme)s::text)
  AND (%(session_id)s::text IS NULL OR turn.session_id = %(session_id)s::text)
  AND (%(before)s::timestamptz IS NULL OR turn.ts < %(before)s::timestamptz)
  AND (%(ids)s::bigint[] IS NULL OR turn.id = ANY (%(ids)s::bigint[]))
  AND (%(needles)s::text[] IS NULL
       OR EXISTS (SELECT FROM unnest(%(needles)s::text[]) AS one (needle)
                  WHERE strpos(lower(turn.content), lower(one.needle)) > 0))
  AND (%(authors)s::text[] IS NULL
       OR EXISTS (SELECT FROM jsonb_path_query(turn.metadata, '$.author.*') AS value
                  WHERE lower(value #>> '{}') = ANY (%(authors)s::text[])))
  AND (turn.ts <= %(cut)s::timestamptz OR turn.id <= %(horizon)s::bigint)
ORDER BY turn.agent_identity, turn.id
LIMIT %(limit)s::integer;


-- finish --
-- Ends a receipt, once.
UPDATE erasure_receipts
SET finished_at = clock_timestamp(), counts = %(counts)s::jsonb, unreached = %(unreached)s::text[], digest = %(digest)s
WHERE id = %(id)s AND finished_at IS NULL;


-- history_size --
-- How many operations a history has, and where its last one stands.
SELECT count(*) OVER (), order_us, writer, seq, part FROM memory_operations
WHERE agent_identity = %(theme)s AND target = %(target)s
ORDER BY order_us DESC, writer DESC, seq DESC, part DESC LIMIT 1;


-- homes --
-- Every home that has ever delivered anything to this database, and when it was last heard of, if that is known.
--
-- What other agents wrote through `mcp` is held by no home.
SELECT sign.home_id, max(sign.at)
FROM (
    SELECT held.home AS home_id, NULL::timestamptz AS at FROM memory_entries AS entry, jsonb_object_keys(entry.homes) AS held (home)
    UNION ALL
    SELECT home_id, compared_at FROM memory_files
    UNION ALL
    SELECT home_id, updated_at FROM journal_writers
) AS sign
WHERE sign.home_id NOT IN ('', 'mcp')
GROUP BY sign.home_id ORDER BY 2 DESC NULLS LAST, 1;


-- horizon --
-- A number of each table that every row there has a lower one than, and every later row a higher one.
SELECT nextval('conversations_id_seq'), nextval('memory_entries_id_seq'), nextval('memory_operations_id_seq'),
       nextval('delegations_id_seq'), nextval('recall_log_id_seq');


-- insert_tombstones --
-- Sets tombstones; lengths are those of texts that are looked for as parts of others, null for everything else.
INSERT INTO tombstones (hash, receipt_id, forgotten_at, part_length)
SELECT hash, %(receipt)s, %(at)s::timestamptz, length
FROM unnest(%(hashes)s::bytea[], %(lengths)s::integer[]) AS given (hash, length)
ON CONFLICT DO NOTHING;


-- key --
-- The key of the tombstones.
SELECT key FROM erasure_key;


-- key_of_receipt --
-- The key of a receipt's tombstones.
SELECT coalesce(receipt.key, own.key) FROM erasure_receipts AS receipt, erasure_key AS own WHERE receipt.id = %(id)s;


-- left_delegations --
-- How many delegations are left of themes, sessions and tasks that a receipt says are forgotten?
SELECT count(*) FROM delegations AS edge, (SELECT coalesce(receipt.key, own.key) AS key FROM erasure_receipts AS receipt, erasure_key AS own
      WHERE receipt.id = %(receipt)s) AS one
WHERE EXISTS (
    SELECT FROM tombstones AS known
    WHERE known.receipt_id = %(receipt)s AND edge.ts <= known.forgotten_at
      AND known.hash IN (
          hermes_tombstone(one.key, ARRAY['scope', '', '']),
          hermes_tombstone(one.key, ARRAY['scope', edge.agent_identity, '']),
          hermes_tombstone(one.key, ARRAY['scope', '', edge.session_id]),
          hermes_tombstone(one.key, ARRAY['scope', edge.agent_identity, edge.session_id]),
          hermes_tombstone(one.key, ARRAY['task', edge.agent_identity, edge.session_id, encode(edge.task_digest, 'hex')])));


-- left_history --
-- How many operations on memories still say what a receipt says is forgotten?
SELECT count(*) FROM memory_operations AS operation, (SELECT coalesce(receipt.key, own.key) AS key FROM erasure_receipts AS receipt, erasure_key AS own
      WHERE receipt.id = %(receipt)s) AS one
WHERE EXISTS (
    SELECT FROM (
          SELECT hermes_tombstone(one.key, spoken.words)
          FROM (SELECT operation.agent_identity
                UNION ALL SELECT alias.old FROM theme_aliases AS alias WHERE alias.new = operation.agent_identity) AS named (theme),
               unnest(ARRAY[operation.content, operation.previous, operation.old_text]) AS said (text),
               LATERAL (VALUES (ARRAY['memory', named.theme, operation.target, said.text]),
                               (ARRAY['noted', named.theme, operation.target, operation.metadata ->> 'session_id', said.text]))
               AS spoken (words)
          WHERE said.text <> ''
          UNION ALL
          SELECT hermes_tombstone(one.key, ARRAY['scope', place.theme, place.session_id])
          -- What a session took away from others stays taken away.
          FROM (VALUES ('', ''), (operation.agent_identity, ''),
                       ('', operation.metadata ->> 'session_id'),
                       (operation.agent_identity, operation.metadata ->> 'session_id')) AS place (theme, session_id)
          WHERE place.session_id = '' OR operation.action <> 'remove'
    ) AS told (hash) JOIN tombstones AS known ON known.hash = told.hash
    WHERE known.receipt_id = %(receipt)s AND operation.at <= known.forgotten_at);


-- left_memories --
-- How many entries are there that a receipt says are forgotten, by their words or by their theme and session?
SELECT count(*) FROM memory_entries AS entry, (SELECT coalesce(receipt.key, own.key) AS key FROM erasure_receipts AS receipt, erasure_key AS own
      WHERE receipt.id = %(receipt)s) AS one
WHERE EXISTS (
    SELECT FROM (
          SELECT hermes_tombstone(one.key, spoken.words)
          FROM (SELECT entry.agent_identity UNION ALL SELECT alias.old FROM theme_aliases AS alias WHERE alias.new = entry.agent_identity)
               AS named (theme),
               LATERAL (VALUES (ARRAY['memory', named.theme, entry.target, entry.content]),
                               (ARRAY['noted', named.theme, entry.target, entry.metadata ->> 'session_id', entry.content]))
               AS spoken (words)
          UNION ALL
          SELECT hermes_tombstone(one.key, ARRAY['scope', place.theme, place.session_id])
          FROM (VALUES ('', ''), (entry.agent_identity, ''), ('', coalesce(entry.metadata ->> 'session_id', '')),
                       (entry.agent_identity, coalesce(entry.metadata ->> 'session_id', ''))) AS place (theme, session_id)
    ) AS told (hash) JOIN tombstones AS known ON known.hash = told.hash
    WHERE known.receipt_id = %(receipt)s AND entry.updated_at <= known.forgotten_at);


-- left_turns --
-- How many turns are there that a receipt says are forgotten, by their words or by their theme and session?
SELECT count(*) FROM conversations AS turn, (SELECT coalesce(receipt.key, own.key) AS key FROM erasure_receipts AS receipt, erasure_key AS own
      WHERE receipt.id = %(receipt)s) AS one
WHERE EXISTS (
    SELECT FROM (
          SELECT hermes_tombstone(one.key, spoken.words)
          FROM (SELECT turn.agent_identity UNION ALL SELECT alias.old FROM theme_aliases AS alias WHERE alias.new = turn.agent_identity)
               AS named (theme),
               encode(coalesce(turn.digest, hermes_turn_digest(turn.role, turn.content)), 'hex') AS digest,
               LATERAL (VALUES (ARRAY['turn', named.theme, turn.content]),
                               (ARRAY['said', named.theme, turn.session_id, digest]),
                               (ARRAY['occurrence', named.theme, turn.session_id, digest, turn.ordinal::text]),
                               (ARRAY['moment', named.theme, turn.session_id, digest,
                                      (extract(epoch FROM turn.ts) * 1000000)::bigint::text])) AS spoken (words)
          UNION ALL
          SELECT hermes_tombstone(one.key, ARRAY['scope', place.theme, place.session_id])
          FROM (VALUES ('', ''), (turn.agent_identity, ''), ('', turn.session_id), (turn.agent_identity, turn.session_id))
               AS place (theme, session_id)
          UNION ALL
          SELECT hermes_tombstone(one.key, ARRAY['author', lower(value #>> '{}'), place.theme, place.session_id])
          FROM jsonb_path_query(turn.metadata, '$.author.*') AS value,
               (VALUES ('', ''), (turn.agent_identity, ''), ('', turn.session_id), (turn.agent_identity, turn.session_id))
               AS place (theme, session_id)
    ) AS told (hash) JOIN tombstones AS known ON known.hash = told.hash
    WHERE known.receipt_id = %(receipt)s AND turn.ts <= known.forgotten_at);


-- metadata_of_conversations --
-- The metadata of these rows, locked.
SELECT kept.agent_identity, kept.id, kept.metadata
FROM unnest(%(themes)s::text[], %(ids)s::bigint[]) AS asked (theme, id)
JOIN conversations AS kept ON kept.agent_identity = asked.theme AND kept.id = asked.id
FOR UPDATE OF kept;


-- metadata_of_delegations --
-- The metadata of these rows, locked.
SELECT kept.agent_identity, kept.id, kept.metadata
FROM unnest(%(themes)s::text[], %(ids)s::bigint[]) AS asked (theme, id)
JOIN delegations AS kept ON kept.agent_identity = asked.theme AND kept.id = asked.id
FOR UPDATE OF kept;


-- metadata_of_memory_entries --
-- The metadata of these rows, locked.
SELECT kept.agent_identity, kept.id, kept.metadata
FROM unnest(%(themes)s::text[], %(ids)s::bigint[]) AS asked (theme, id)
JOIN memory_entries AS kept ON kept.agent_identity = asked.theme AND kept.id = asked.id
FOR UPDATE OF kept;


-- named_among --
-- Those of these rows that somebody names; the options are those of find_turns.
SELECT turn.agent_identity, turn.id, turn.session_id, turn.role, turn.content, turn.ts, turn.metadata, turn.ordinal,
       encode(coalesce(turn.digest, hermes_turn_digest(turn.role, turn.content)), 'hex')
FROM unnest(%(themes)s::text[], %(row_ids)s::bigint[]) AS asked (theme, id)
JOIN conversations AS turn ON turn.agent_identity = asked.theme AND turn.id = asked.id
WHERE (%(theme)s::text IS NULL OR turn.agent_identity = %(theme)s::text)
  AND (%(session_id)s::text IS NULL OR turn.session_id = %(session_id)s::text)
  AND (%(before)s::timestamptz IS NULL OR turn.ts < %(before)s::timestamptz)
  AND (%(ids)s::bigint[] IS NULL OR turn.id = ANY (%(ids)s::bigint[]))
  AND (%(needles)s::text[] IS NULL
       OR EXISTS (SELECT FROM unnest(%(needles)s::text[]) AS one (needle)
                  WHERE strpos(lower(turn.content), lower(one.needle)) > 0))
  AND (%(authors)s::text[] IS NULL
       OR EXISTS (SELECT FROM jsonb_path_query(turn.metadata, '$.author.*') AS value
                  WHERE lower(value #>> '{}') = ANY (%(authors)s::text[])))
  AND (turn.ts <= %(cut)s::timestamptz OR turn.id <= %(horizon)s::bigint)
ORDER BY turn.agent_identity, turn.id;


-- named_sessions --
-- The sessions that hold turns somebody names; the options are those of find_turns.
SELECT DISTINCT turn.agent_identity, turn.session_id
FROM conversations AS turn
WHERE (%(theme)s::text IS NULL OR turn.agent_identity = %(theme)s::text)
  AND (%(session_id)s::text IS NULL OR turn.session_id = %(session_id)s::text)
  AND (%(before)s::timestamptz IS NULL OR turn.ts < %(before)s::timestamptz)
  AND (%(ids)s::bigint[] IS NULL OR turn.id = ANY (%(ids)s::bigint[]))
  AND (%(needles)s::text[] IS NULL
       OR EXISTS (SELECT FROM unnest(%(needles)s::text[]) AS one (needle)
                  WHERE strpos(lower(turn.content), lower(one.needle)) > 0))
  AND (%(authors)s::text[] IS NULL
       OR EXISTS (SELECT FROM jsonb_path_query(turn.metadata, '$.author.*') AS value
                  WHERE lower(value #>> '{}') = ANY (%(authors)s::text[])))
  AND (turn.ts <= %(cut)s::timestamptz OR turn.id <= %(horizon)s::bigint)
  AND turn.id > %(above)s::bigint
ORDER BY 1, 2;


-- names_of_rules --
-- Takes the names and the reason off rules of a forgotten theme or session that hide nothing and will hide nothing.
--
-- theme, session_id: null where it does not matter.
UPDATE hidden AS rule SET theme = NULL, session_id = NULL, reason = '', is_open = false
WHERE (rule.undone_at IS NOT NULL OR rule.until IS NOT NULL) AND (rule.theme IS NOT NULL OR rule.session_id IS NOT NULL)
  AND (%(theme)s::text IS NOT NULL OR %(session_id)s::text IS NOT NULL)
  AND (%(theme)s::text IS NULL OR rule.theme = %(theme)s::text
       OR rule.theme IS NULL AND rule.session_id = %(session_id)s::text)
  AND (%(session_id)s::text IS NULL OR rule.session_id = %(session_id)s::text)
  AND NOT EXISTS (SELECT FROM hermes_rows AS stored WHERE stored.hidden_by = rule.id);


-- reasons --
-- Takes the reason off rules that name single rows, none of which is left: it may quote what was forgotten.
UPDATE hidden AS rule SET reason = ''
WHERE NOT rule.is_open AND rule.reason <> '' AND NOT EXISTS (SELECT FROM hermes_rows AS stored WHERE stored.hidden_by = rule.id);


-- newest_receipt --
-- The number of the newest receipt, 0 when nothing was ever forgotten.
SELECT coalesce(max(id), 0) FROM erasure_receipts;


-- note_counts --
-- Notes what was erased so far.
UPDATE erasure_receipts SET counts = %(counts)s::jsonb WHERE id = %(id)s AND finished_at IS NULL;


-- operations_ahead --
-- The operations of one theme and target that were stored before a request and are dated after it.
SELECT order_us, writer, seq, part FROM memory_operations
WHERE agent_identity = %(theme)s AND target = %(target)s AND at > %(cut)s::timestamptz AND id <= %(horizon)s::bigint;


-- receipt --
-- One receipt.
SELECT id, forgotten_at, actor, home_id, named, finished_at, counts, unreached, digest
FROM erasure_receipts WHERE id = %(id)s;


-- receipts --
-- The receipts, newest first.
SELECT id, forgotten_at, actor, home_id, named, finished_at, counts, unreached, digest
FROM erasure_receipts ORDER BY id DESC LIMIT %(limit)s::integer;


-- session_keys --
-- The turns of these sessions in the order they were said, and which of them somebody names; the options are those of
-- find_turns.
SELECT turn.agent_identity, turn.session_id, turn.id,
       (%(before)s::timestamptz IS NULL OR turn.ts < %(before)s::timestamptz)
           AND (%(ids)s::bigint[] IS NULL OR turn.id = ANY (%(ids)s::bigint[]))
           AND (%(needles)s::text[] IS NULL
                OR EXISTS (SELECT FROM unnest(%(needles)s::text[]) AS one (needle)
                           WHERE strpos(lower(turn.content), lower(one.needle)) > 0))
           AND (%(authors)s::text[] IS NULL
                OR EXISTS (SELECT FROM jsonb_path_query(turn.metadata, '$.author.*') AS value
                           WHERE lower(value #>> '{}') = ANY (%(authors)s::text[])))
           AND (turn.ts <= %(cut)s::timestamptz OR turn.id <= %(horizon)s::bigint)
FROM unnest(%(themes)s::text[], %(session_ids)s::text[]) AS asked (theme, session_id)
JOIN conversations AS turn ON turn.agent_identity = asked.theme AND turn.session_id = asked.session_id
ORDER BY turn.agent_identity, turn.session_id, turn.ts, turn.id;


-- stamp_conversations --
-- Gives rows other metadata.
UPDATE conversations AS kept SET metadata = new.metadata::jsonb
FROM unnest(%(themes)s::text[], %(ids)s::bigint[], %(metadata)s::text[]) AS new (theme, id, metadata)
WHERE kept.agent_identity = new.theme AND kept.id = new.id;


-- stamp_delegations --
-- Gives rows other metadata.
UPDATE delegations AS kept SET metadata = new.metadata::jsonb
FROM unnest(%(themes)s::text[], %(ids)s::bigint[], %(metadata)s::text[]) AS new (theme, id, metadata)
WHERE kept.agent_identity = new.theme AND kept.id = new.id;


-- stamp_memory_entries --
-- Gives rows other metadata.
UPDATE memory_entries AS kept SET metadata = new.metadata::jsonb
FROM unnest(%(themes)s::text[], %(ids)s::bigint[], %(metadata)s::text[]) AS new (theme, id, metadata)
WHERE kept.agent_identity = new.theme AND kept.id = new.id;


-- texts --
-- How many rows of each table hold one of these texts, in what was said until a time, said later, and in names alone?
SELECT table_name, rows, newer, in_names FROM hermes_find_texts(%(needles)s::text[], %(themes)s::text[], %(until)s) ORDER BY 1;


-- themes --
-- Every theme that holds anything, found by jumping through the indexes.
WITH RECURSIVE turn (theme) AS (
    SELECT min(agent_identity) FROM conversations
    UNION ALL
    SELECT (SELECT min(c.agent_identity) FROM conversations AS c WHERE c.agent_identity > turn.theme)
    FROM turn WHERE turn.theme IS NOT NULL
), operation (theme) AS (
    SELECT min(agent_identity) FROM memory_operations
    UNION ALL
    SELECT (SELECT min(o.agent_identity) FROM memory_operations AS o WHERE o.agent_identity > operation.theme)
    FROM operation WHERE operation.theme IS NOT NULL
), entry (theme) AS (
    SELECT min(agent_identity) FROM memory_entries
    UNION ALL
    SELECT (SELECT min(m.agent_identity) FROM memory_entries AS m WHERE m.agent_identity > entry.theme)
    FROM entry WHERE entry.theme IS NOT NULL
)
SELECT theme FROM turn WHERE theme IS NOT NULL
UNION SELECT theme FROM operation WHERE theme IS NOT NULL
UNION SELECT theme FROM entry WHERE theme IS NOT NULL
ORDER BY 1;


-- tombstones_of --
-- The tombstones of a receipt with their times, and the length of those that are parts of texts, in order.
SELECT hash, max(forgotten_at), max(part_length) FROM tombstones WHERE receipt_id = %(receipt)s GROUP BY hash ORDER BY hash;


-- unfinished --
-- The newest receipt of a request that was begun and not finished: its number, time, horizon and counts so far.
SELECT id, forgotten_at, horizon, counts FROM erasure_receipts
WHERE request = %(request)s AND finished_at IS NULL ORDER BY id DESC LIMIT 1;
