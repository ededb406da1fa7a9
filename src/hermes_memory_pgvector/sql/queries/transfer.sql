-- aliases --
-- Which themes have other names, in a fixed order?
SELECT old, new, since, finished_at FROM theme_aliases
WHERE %(theme)s::text IS NULL OR %(theme)s IN (old, new)
ORDER BY old COLLATE "C";


-- delegations --
-- Every edge between a session and its subagent's, for an export.
--
-- theme, session_id, since, until: null for no such limit.
SELECT agent_identity, session_id, child_session_id, encode(task_digest, 'hex'), ts, metadata, home_id
FROM delegations
WHERE (%(theme)s::text IS NULL OR agent_identity = %(theme)s::text)
  AND (%(session_id)s::text IS NULL OR session_id = %(session_id)s::text)
  AND (%(since)s::timestamptz IS NULL OR ts >= %(since)s::timestamptz)
  AND (%(until)s::timestamptz IS NULL OR ts < %(until)s::timestamptz)
ORDER BY agent_identity COLLATE "C", session_id COLLATE "C", ts, child_session_id COLLATE "C", task_digest;


-- events --
-- Every memory operation in the order of its making, for an export.
--
-- theme: null for all of them.
SELECT agent_identity, target, order_us, writer, seq, part, action, content, old_text, previous, home_id, origin, at, metadata,
       written_by, trust
FROM memory_operations
WHERE (%(theme)s::text IS NULL OR agent_identity = %(theme)s::text)
ORDER BY agent_identity COLLATE "C", target, order_us, writer COLLATE "C", seq, part;


-- find_receipt --
-- A receipt that was brought here before, or that was made here.
SELECT id FROM erasure_receipts
WHERE forgotten_at = %(at)s AND actor = %(actor)s AND home_id = %(home_id)s AND named = %(named)s::text[]
ORDER BY id LIMIT 1;


-- held_turns --
-- The ids of those of these turns that are stored; arrays of equal length: themes, session_ids, digests (hex), ordinals.
SELECT given.place, turn.id
FROM unnest(%(themes)s::text[], %(session_ids)s::text[], %(digests)s::text[], %(ordinals)s::integer[])
     WITH ORDINALITY AS given (theme, session_id, digest, ordinal, place)
JOIN conversations AS turn ON turn.agent_identity = given.theme AND turn.session_id = given.session_id
 AND turn.digest = decode(given.digest, 'hex') AND turn.ordinal = given.ordinal;


-- held_memories --
-- Which of these memories are stored?
--
-- themes, targets, contents: three arrays, one element per memory.
SELECT asked.place::integer, memory.id
FROM unnest(%(themes)s::text[], %(targets)s::text[], %(contents)s::text[])
     WITH ORDINALITY AS asked (theme, target, content, place)
JOIN memory_entries AS memory
  ON memory.agent_identity = asked.theme AND memory.target = asked.target
 AND hermes_digest(memory.content) = hermes_digest(asked.content);


-- insert_aliases --
-- Brings other names of themes here; a name that somebody uses here, or that leads elsewhere already, stays as it is.
INSERT INTO theme_aliases (old, new, since, finished_at)
SELECT given.old, coalesce(onward.new, given.new), given.since, given.finished_at
FROM unnest(%(olds)s::text[], %(news)s::text[], %(since)s::timestamptz[], %(finished)s::timestamptz[])
    AS given (old, new, since, finished_at)
LEFT JOIN theme_aliases AS onward ON onward.old = given.new
WHERE coalesce(onward.new, given.new) <> given.old
  AND NOT EXISTS (SELECT FROM conversations AS turn WHERE turn.agent_identity = given.old)
  AND NOT EXISTS (SELECT FROM memory_entries AS entry WHERE entry.agent_identity = given.old)
ON CONFLICT (old) DO NOTHING
RETURNING old, new;


-- insert_delegations --
-- Notes edges of an export, each once; answers how many were new by their themes.
INSERT INTO delegations (agent_identity, session_id, child_session_id, task_digest, ts, metadata, home_id)
SELECT given.theme, given.session_id, given.child_session_id, decode(given.digest, 'hex'), given.ts, given.metadata::jsonb,
       nullif(given.home_id, '')
FROM unnest(%(themes)s::text[], %(session_ids)s::text[], %(child_session_ids)s::text[], %(digests)s::text[],
            %(ts)s::timestamptz[], %(metadata)s::text[], %(home_ids)s::text[])
     AS given (theme, session_id, child_session_id, digest, ts, metadata, home_id)
ON CONFLICT (agent_identity, session_id, child_session_id, task_digest) DO NOTHING
RETURNING agent_identity;


-- insert_receipt --
-- Brings a receipt here, with the key of its tombstones where that is another one than this database's.
INSERT INTO erasure_receipts (forgotten_at, actor, home_id, named, finished_at, counts, unreached, key)
SELECT %(at)s, %(actor)s, %(home_id)s, %(named)s::text[], %(finished_at)s::timestamptz, %(counts)s::jsonb,
       %(unreached)s::text[], nullif(%(key)s::bytea, own.key)
FROM erasure_key AS own
RETURNING id;


-- insert_tombstones --
-- Brings tombstones here.
INSERT INTO tombstones (hash, receipt_id, forgotten_at, part_length)
SELECT given.hash, given.receipt_id, given.forgotten_at, given.part_length
FROM unnest(%(hashes)s::bytea[], %(receipts)s::bigint[], %(at)s::timestamptz[], %(lengths)s::integer[])
    AS given (hash, receipt_id, forgotten_at, part_length)
ON CONFLICT DO NOTHING;


-- known_aliases --
-- Where do these names of themes lead?
SELECT old, new FROM theme_aliases WHERE old = ANY (%(olds)s::text[]);


-- may_read_forgotten --
-- May this login read what was forgotten, and the key of it?
SELECT has_table_privilege('erasure_key', 'SELECT') AND has_table_privilege('erasure_receipts', 'SELECT')
   AND has_table_privilege('tombstones', 'SELECT');


-- memories --
-- Every memory with the homes that hold it, for an export; null stands for no vectors.
--
-- theme, since, until (of its last change): null for no such limit.
SELECT memory.agent_identity, memory.target, memory.content, memory.created_at, memory.updated_at, memory.metadata,
       (SELECT rule.at FROM hidden AS rule WHERE rule.id = memory.hidden_by) AS hidden,
       memory.origin, memory.home_id, memory.trust,
       (SELECT coalesce(jsonb_object_agg(held.home, held.how -> 'o'), '{}') FROM jsonb_each(memory.homes) AS held (home, how)) AS homes,
       NULL::text[] AS vectors
FROM memory_entries AS memory
WHERE (%(theme)s::text IS NULL OR memory.agent_identity = %(theme)s::text)
  AND (%(since)s::timestamptz IS NULL OR memory.updated_at >= %(since)s::timestamptz)
  AND (%(until)s::timestamptz IS NULL OR memory.updated_at < %(until)s::timestamptz)
  AND (%(origin)s::text IS NULL OR hermes_is_from(
           hermes_origin_of_memory(memory.origin, memory.metadata), memory.trust, memory.metadata, %(origin)s::text))
ORDER BY memory.agent_identity COLLATE "C", memory.target, memory.created_at, memory.content COLLATE "C";


-- memories_with_vectors --
-- Every memory with the homes that hold it, for an export, each with its vectors: chunk, blank, numbers.
--
-- theme, since, until (of its last change): null for no such limit.
SELECT memory.agent_identity, memory.target, memory.content, memory.created_at, memory.updated_at, memory.metadata,
       (SELECT rule.at FROM hidden AS rule WHERE rule.id = memory.hidden_by) AS hidden,
       memory.origin, memory.home_id, memory.trust,
       (SELECT coalesce(jsonb_object_agg(held.home, held.how -> 'o'), '{{}}') FROM jsonb_each(memory.homes) AS held (home, how)) AS homes,
       (SELECT array_agg(own.chunk || ' ' || own.embedding::text ORDER BY own.chunk)
        FROM {memory_vectors} AS own
        WHERE own.agent_identity = memory.agent_identity AND own.id = memory.id) AS vectors
FROM memory_entries AS memory
WHERE (%(theme)s::text IS NULL OR memory.agent_identity = %(theme)s::text)
  AND (%(since)s::timestamptz IS NULL OR memory.updated_at >= %(since)s::timestamptz)
  AND (%(until)s::timestamptz IS NULL OR memory.updated_at < %(until)s::timestamptz)
  AND (%(origin)s::text IS NULL OR hermes_is_from(
           hermes_origin_of_memory(memory.origin, memory.metadata), memory.trust, memory.metadata, %(origin)s::text))
ORDER BY memory.agent_identity COLLATE "C", memory.target, memory.created_at, memory.content COLLATE "C";


-- peer_memories --
-- Every memory of a database that is not ours but has the published package's columns.
SELECT agent_identity, target, content, created_at, updated_at, coalesce(metadata, '{}'::jsonb)
FROM memory_entries ORDER BY agent_identity, id;


-- peer_tables --
-- Does this database have tables of memories and turns, whoever made them?
SELECT to_regclass('memory_entries') IS NOT NULL AND to_regclass('conversations') IS NOT NULL;


-- peer_turns --
-- Every turn of a database that is not ours but has the published package's columns, with its place among equal ones.
SELECT agent_identity, session_id, role, content, ts, coalesce(metadata, '{}'::jsonb),
       row_number() OVER (PARTITION BY agent_identity, session_id, role, content ORDER BY ts, id)
FROM conversations ORDER BY agent_identity, session_id, ts, id;


-- receipts --
-- What was forgotten, in the order in which it was: the receipts with their place in that order and their key.
SELECT row_number() OVER (ORDER BY receipt.forgotten_at, receipt.id), receipt.forgotten_at, receipt.actor, receipt.home_id,
       receipt.named, receipt.finished_at, receipt.counts, receipt.unreached, coalesce(receipt.key, own.key)
FROM erasure_receipts AS receipt, erasure_key AS own
ORDER BY receipt.forgotten_at, receipt.id;


-- seal_receipt --
-- Seals a receipt that was brought here.
UPDATE erasure_receipts SET digest = %(digest)s WHERE id = %(id)s AND digest = '';


-- tombstones --
-- Every tombstone with the place of its receipt, in a fixed order.
SELECT receipt.place, stone.hash, stone.forgotten_at, stone.part_length
FROM (SELECT id, row_number() OVER (ORDER BY forgotten_at, id) AS place FROM erasure_receipts) AS receipt
JOIN tombstones AS stone ON stone.receipt_id = receipt.id
ORDER BY receipt.place, stone.forgotten_at, stone.hash;


-- turns --
-- Every turn in the order in which a session goes, for an export; null stands for no vectors.
--
-- theme, session_id, since, until, origin: null for no such limit.
SELECT turn.agent_identity, turn.session_id, turn.role, turn.content, turn.ts, turn.metadata, turn.parent_session_id,
       turn.ordinal, (SELECT rule.at FROM hidden AS rule WHERE rule.id = turn.hidden_by) AS hidden,
       turn.origin, turn.home_id, turn.trust,
       CASE WHEN turn.digest <> hermes_turn_digest(turn.role, turn.content) THEN encode(turn.digest, 'hex') END AS digest, NULL::text[] AS vectors
FROM conversations AS turn
WHERE (%(theme)s::text IS NULL OR turn.agent_identity = %(theme)s::text)
  AND (%(session_id)s::text IS NULL OR turn.session_id = %(session_id)s::text)
  AND (%(since)s::timestamptz IS NULL OR turn.ts >= %(since)s::timestamptz)
  AND (%(until)s::timestamptz IS NULL OR turn.ts < %(until)s::timestamptz)
  AND (%(origin)s::text IS NULL OR hermes_is_from(
           hermes_origin_of_turn(turn.origin, turn.role), turn.trust, turn.metadata, %(origin)s::text))
ORDER BY turn.agent_identity COLLATE "C", turn.session_id COLLATE "C", turn.ts, turn.id;


-- turns_with_vectors --
-- Every turn in the order in which a session goes, for an export, each with its vectors: chunk, blank, numbers.
--
-- theme, session_id, since, until, origin: null for no such limit.
SELECT turn.agent_identity, turn.session_id, turn.role, turn.content, turn.ts, turn.metadata, turn.parent_session_id,
       turn.ordinal, (SELECT rule.at FROM hidden AS rule WHERE rule.id = turn.hidden_by) AS hidden,
       turn.origin, turn.home_id, turn.trust,
       CASE WHEN turn.digest <> hermes_turn_digest(turn.role, turn.content) THEN encode(turn.digest, 'hex') END AS digest,
       (SELECT array_agg(own.chunk || ' ' || own.embedding::text ORDER BY own.chunk)
        FROM {turn_vectors} AS own WHERE own.agent_identity = turn.agent_identity AND own.id = turn.id) AS vectors
FROM conversations AS turn
WHERE (%(theme)s::text IS NULL OR turn.agent_identity = %(theme)s::text)
  AND (%(session_id)s::text IS NULL OR turn.session_id = %(session_id)s::text)
  AND (%(since)s::timestamptz IS NULL OR turn.ts >= %(since)s::timestamptz)
  AND (%(until)s::timestamptz IS NULL OR turn.ts < %(until)s::timestamptz)
  AND (%(origin)s::text IS NULL OR hermes_is_from(
           hermes_origin_of_turn(turn.origin, turn.role), turn.trust, turn.metadata, %(origin)s::text))
ORDER BY turn.agent_identity COLLATE "C", turn.session_id COLLATE "C", turn.ts, turn.id;


-- vectors_of_memories --
-- Gives memories the vectors that an export brought along, as they are; those that have one keep it.
--
-- Arrays of equal length, one element per vector: themes, targets, contents, chunks, vectors (text).
WITH given AS (
    SELECT memory.agent_identity, memory.id, given.chunk, memory.updated_at, memory.target, given.vector
    FROM unnest(%(themes)s::text[], %(targets)s::text[], %(contents)s::text[], %(chunks)s::smallint[], %(vectors)s::text[])
         AS given (theme, target, content, chunk, vector)
    JOIN memory_entries AS memory
      ON memory.agent_identity = given.theme AND memory.target = given.target
     AND hermes_digest(memory.content) = hermes_digest(given.content) AND memory.hidden_by IS NULL
), made AS (
    INSERT INTO {memory_vectors} (agent_identity, id, chunk, ts, target, embedding)
    SELECT agent_identity, id, chunk, updated_at, target, vector::halfvec FROM given
    ON CONFLICT (agent_identity, id, chunk) DO NOTHING
)
DELETE FROM pending_vectors AS pending USING given
WHERE pending.agent_identity = given.agent_identity AND pending.kind = 'memory' AND pending.id = given.id;


-- vectors_of_turns --
-- Gives turns the vectors that an export brought along, as they are; those that have one keep it.
--
-- Arrays of equal length, one element per vector: themes, session_ids, digests (hex), words
-- (hex digests of the content that the vector is of), ordinals, chunks, vectors (text).
WITH given AS (
    SELECT turn.agent_identity, turn.id, given.chunk, turn.ts, turn.content, given.vector
    FROM unnest(%(themes)s::text[], %(session_ids)s::text[], %(digests)s::text[], %(words)s::text[],
                %(ordinals)s::integer[], %(chunks)s::smallint[], %(vectors)s::text[])
         AS given (theme, session_id, digest, words, ordinal, chunk, vector)
    JOIN conversations AS turn
      ON turn.agent_identity = given.theme AND turn.session_id = given.session_id
     AND turn.digest = decode(given.digest, 'hex') AND turn.ordinal = given.ordinal
     AND hermes_turn_digest(turn.role, turn.content) = decode(given.words, 'hex') AND turn.hidden_by IS NULL
), made AS (
    INSERT INTO {turn_vectors} (agent_identity, id, chunk, ts, content_hash, embedding)
    SELECT agent_identity, id, chunk, ts, hermes_content_hash(content), vector::halfvec FROM given
    ON CONFLICT (agent_identity, id, chunk) DO NOTHING
)
DELETE FROM pending_vectors AS pending USING given
WHERE pending.agent_identity = given.agent_identity AND pending.kind = 'turn' AND pending.id = given.id;
