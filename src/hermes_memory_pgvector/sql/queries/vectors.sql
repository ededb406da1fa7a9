-- clock --
-- The server's time: leases of all processes are by one clock.
SELECT now();


-- count_pending --
-- How many rows want a vector, and how many of them are due now? Counted up to a bound.
SELECT count(*), count(*) FILTER (WHERE due_at <= now()) FROM (SELECT due_at FROM pending_vectors WHERE reason = '' LIMIT 100000) AS counted;


-- drop_of_memories --
-- Takes memories out of the search by meaning.
DELETE FROM {memory_vectors} AS vector
USING unnest(%(themes)s::text[], %(ids)s::bigint[]) AS given (theme, id)
WHERE vector.agent_identity = given.theme AND vector.id = given.id
RETURNING vector.agent_identity, vector.id;


-- drop_of_turns --
-- Deletes the vectors of turns, to be made anew.
DELETE FROM {turn_vectors} AS vector
USING unnest(%(themes)s::text[], %(ids)s::bigint[]) AS gone (theme, id)
WHERE vector.agent_identity = gone.theme AND vector.id = gone.id
RETURNING vector.agent_identity, vector.id;


-- due --
-- Rows that want a vector, those that have waited longest first; they are locked, and others take others.
SELECT agent_identity, kind, id FROM pending_vectors
WHERE due_at <= now() AND reason = '' ORDER BY due_at LIMIT %(limit)s::integer
FOR UPDATE SKIP LOCKED;


-- enqueue --
-- Puts these rows into the queue for vectors.
INSERT INTO pending_vectors (agent_identity, kind, id)
SELECT theme, kind, id FROM unnest(%(themes)b::text[], %(kinds)b::text[], %(ids)b::bigint[]) AS new (theme, kind, id)
ON CONFLICT (agent_identity, kind, id) DO UPDATE SET due_at = excluded.due_at, attempts = 0, reason = '';


-- finish_claimed --
-- Takes these rows off the queue for vectors, unless they were put into it or leased again since, or the current model is
-- another one by now: they want a vector of that.
--
-- leases: when the lease that a row was claimed with ends. model_id: the model that the vectors are of.
DELETE FROM pending_vectors AS pending
USING unnest(%(themes)b::text[], %(kinds)b::text[], %(ids)b::bigint[], %(leases)s::timestamptz[])
          AS done (theme, kind, id, lease)
WHERE pending.agent_identity = done.theme AND pending.kind = done.kind AND pending.id = done.id
  AND pending.due_at = done.lease
  AND EXISTS (SELECT FROM embedding_models AS model WHERE model.id = %(model_id)s::integer AND model.is_current);


-- finish_pending --
-- Takes these rows off the queue for vectors.
DELETE FROM pending_vectors AS pending
USING unnest(%(themes)b::text[], %(kinds)b::text[], %(ids)b::bigint[]) AS done (theme, kind, id)
WHERE pending.agent_identity = done.theme AND pending.kind = done.kind AND pending.id = done.id;


-- give_up --
-- Notes why these rows get no vector, unless they were put into the queue or leased again since.
UPDATE pending_vectors AS pending SET reason = %(reason)s
FROM unnest(%(themes)b::text[], %(kinds)b::text[], %(ids)b::bigint[], %(leases)s::timestamptz[])
          AS given (theme, kind, id, lease)
WHERE pending.agent_identity = given.theme AND pending.kind = given.kind AND pending.id = given.id
  AND pending.due_at = given.lease;


-- given_up --
-- How many rows get no vector, by the reason?
SELECT reason, count(*) FROM pending_vectors WHERE reason <> '' GROUP BY reason;


-- insert_of_memories --
-- Stores vectors of memories; rows whose memory is gone, hidden or has changed since, and rows typed by hand under a name
-- too long for the key, are passed over.
--
-- Arrays of equal length, one element per vector: themes, ids, chunks, digests (hermes_digest of the content that was
-- embedded), vectors (see postgres/vector_types.vector_array). A vector that is already there is replaced. The memories are
-- locked: an edit at the same moment comes before this or drops these vectors.
INSERT INTO {memory_vectors} (agent_identity, id, chunk, ts, target, embedding)
SELECT memory.agent_identity, memory.id, given.chunk, memory.updated_at, memory.target, l2_normalize(given.vector)
FROM unnest(%(themes)b::text[], %(ids)b::bigint[], %(chunks)s::smallint[], %(digests)s::bytea[], %(vectors)s::halfvec[])
         AS given (theme, id, chunk, digest, vector)
JOIN memory_entries AS memory
  ON memory.agent_identity = given.theme AND memory.id = given.id AND hermes_digest(memory.content) = given.digest
  AND memory.hidden_by IS NULL AND octet_length(memory.agent_identity) <= 256
FOR SHARE OF memory
ON CONFLICT (agent_identity, id, chunk) DO UPDATE
SET ts = excluded.ts, target = excluded.target, embedding = excluded.embedding;


-- insert_of_turns --
-- Stores vectors of turns; rows whose turn is gone, hidden or has changed since, rows typed by hand under a name too long for
-- the key, and vectors already there are passed over.
--
-- Arrays of equal length, one element per vector: themes, ids, chunks (0 for a text in one piece), digests (hermes_digest of
-- the content that was embedded), vectors (see postgres/vector_types.vector_array). The turns are locked: an edit at the same
-- moment comes before this or drops these vectors.
INSERT INTO {turn_vectors} (agent_identity, id, chunk, ts, content_hash, embedding)
SELECT turn.agent_identity, turn.id, given.chunk, turn.ts, hermes_content_hash(turn.content), l2_normalize(given.vector)
FROM unnest(%(themes)b::text[], %(ids)b::bigint[], %(chunks)s::smallint[], %(digests)s::bytea[], %(vectors)s::halfvec[])
         AS given (theme, id, chunk, digest, vector)
JOIN conversations AS turn
  ON turn.agent_identity = given.theme AND turn.id = given.id AND hermes_digest(turn.content) = given.digest
  AND turn.hidden_by IS NULL AND octet_length(turn.agent_identity) <= 256
FOR SHARE OF turn
ON CONFLICT (agent_identity, id, chunk) DO NOTHING;


-- lease --
-- Leases these rows.
UPDATE pending_vectors AS pending SET due_at = %(until)s::timestamptz, attempts = pending.attempts + 1
FROM unnest(%(themes)b::text[], %(kinds)b::text[], %(ids)b::bigint[]) AS due (theme, kind, id)
WHERE pending.agent_identity = due.theme AND pending.kind = due.kind AND pending.id = due.id;


-- missing_of_memories --
-- Memories without a vector of this model, newest first.
--
-- before_id: only ids below it, null for the first page; limit.
SELECT memory.agent_identity, memory.id
FROM memory_entries AS memory
WHERE (%(before_id)s::bigint IS NULL OR memory.id < %(before_id)s::bigint)
  AND memory.hidden_by IS NULL
  AND NOT EXISTS (SELECT FROM {memory_vectors} AS known
                  WHERE known.agent_identity = memory.agent_identity AND known.id = memory.id)
ORDER BY memory.id DESC
LIMIT %(limit)s::integer;


-- missing_of_turns --
-- Turns of at least some length without a vector of this model, newest first.
--
-- before_id: only ids below it, null for the first page; shortest; limit.
SELECT turn.agent_identity, turn.id
FROM conversations AS turn
WHERE length(turn.content) >= %(shortest)s::integer
  AND (%(before_id)s::bigint IS NULL OR turn.id < %(before_id)s::bigint)
  AND turn.hidden_by IS NULL
  AND NOT EXISTS (SELECT FROM {turn_vectors} AS known
                  WHERE known.agent_identity = turn.agent_identity AND known.id = turn.id)
ORDER BY turn.id DESC
LIMIT %(limit)s::integer;


-- model_ids --
-- Every model that has vector tables.
SELECT id FROM embedding_models ORDER BY id;


-- pending_memories --
-- The memories behind these ids.
SELECT memory.agent_identity, memory.id, memory.content, '', hermes_digest(memory.content)
FROM unnest(%(themes)b::text[], %(ids)b::bigint[]) AS asked (theme, id)
JOIN memory_entries AS memory ON memory.agent_identity = asked.theme AND memory.id = asked.id AND memory.hidden_by IS NULL;


-- pending_turns --
-- The turns behind these ids, each with the turn before it.
SELECT turn.agent_identity, turn.id, turn.content, (
           SELECT earlier.content FROM conversations AS earlier
           WHERE earlier.agent_identity = turn.agent_identity AND earlier.session_id = turn.session_id
             AND (earlier.ts, earlier.id) < (turn.ts, turn.id) AND earlier.hidden_by IS NULL
           ORDER BY earlier.ts DESC, earlier.id DESC LIMIT 1
       ) AS before, hermes_digest(turn.content)
FROM unnest(%(themes)b::text[], %(ids)b::bigint[]) AS asked (theme, id)
JOIN conversations AS turn ON turn.agent_identity = asked.theme AND turn.id = asked.id AND turn.hidden_by IS NULL;


-- return_pending --
-- Gives leases back: these rows are due again after a pause.
UPDATE pending_vectors AS pending
SET due_at = to_timestamp(extract(epoch FROM %(now)s::timestamptz)::double precision
                          + %(pause)s::double precision * least(pending.attempts, 60))
FROM unnest(%(themes)b::text[], %(kinds)b::text[], %(ids)b::bigint[]) AS back (theme, kind, id)
WHERE pending.agent_identity = back.theme AND pending.kind = back.kind AND pending.id = back.id;


-- seconds_until_next --
-- In how many seconds is the next row due that waits for a vector? Null when none waits, which greatest() would hide.
SELECT CASE WHEN min(due_at) IS NOT NULL THEN greatest(0, extract(epoch FROM min(due_at) - now())) END::double precision
FROM pending_vectors WHERE reason = '';


-- set_scale --
-- Notes the cosine of unrelated texts in a model, and what its texts have before them, where nobody has yet.
UPDATE embedding_models
SET unrelated_mean = coalesce(unrelated_mean, %(mean)s::real), unrelated_sd = coalesce(unrelated_sd, %(sd)s::real),
    query_prefix = coalesce(query_prefix, %(query_prefix)s::text), document_prefix = coalesce(document_prefix, %(document_prefix)s::text)
WHERE id = %(id)s::integer;


-- typed_memories --
-- Memories that somebody typed into the table, and that nobody has put into the queue for vectors.
SELECT entry.agent_identity, 'memory', entry.id FROM memory_entries AS entry
WHERE entry.origin IS NULL AND entry.hidden_by IS NULL
  AND NOT EXISTS (SELECT FROM {memory_vectors} AS vector WHERE vector.agent_identity = entry.agent_identity AND vector.id = entry.id)
  AND NOT EXISTS (SELECT FROM pending_vectors AS pending
                  WHERE pending.agent_identity = entry.agent_identity AND pending.kind = 'memory' AND pending.id = entry.id)
LIMIT %(limit)s::integer;


-- typed_turns --
-- Turns that somebody typed into the table, and that nobody has put into the queue for vectors.
SELECT turn.agent_identity, 'turn', turn.id FROM conversations AS turn
WHERE turn.digest IS NULL AND turn.hidden_by IS NULL
  AND NOT EXISTS (SELECT FROM {turn_vectors} AS vector WHERE vector.agent_identity = turn.agent_identity AND vector.id = turn.id)
  AND NOT EXISTS (SELECT FROM pending_vectors AS pending
                  WHERE pending.agent_identity = turn.agent_identity AND pending.kind = 'turn' AND pending.id = turn.id)
LIMIT %(limit)s::integer;
