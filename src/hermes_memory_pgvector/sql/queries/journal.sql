-- advance_watermarks --
-- Notes how far these journals have arrived.
UPDATE journal_writers AS known SET seq = arrived.seq, updated_at = now(), schema_version = %(version)s
FROM unnest(%(writers)s::text[], %(seqs)s::bigint[]) AS arrived (writer, seq)
WHERE known.writer = arrived.writer;


-- create_watermarks --
-- Makes sure that these journals have a watermark; one that had ended goes on from there.
INSERT INTO journal_writers (writer, seq, home_id, schema_version)
SELECT given.writer, coalesce(max(one.seq), 0), %(home_id)s, %(version)s
FROM unnest(%(writers)s::text[]) AS given (writer)
LEFT JOIN journals_ended AS ended ON ended.bucket = left(given.writer, 5) AND given.writer = ANY (ended.writers)
LEFT JOIN LATERAL unnest(ended.writers, ended.seqs) AS one (writer, seq) ON one.writer = given.writer
GROUP BY given.writer ORDER BY given.writer
ON CONFLICT (writer) DO NOTHING;


-- drop_dead_letter --
-- Deletes a rejected record; one that waits for a theme is not for an operator to drop.
DELETE FROM dead_letters WHERE id = %(id)s;


-- end_watermarks --
-- Turns the watermarks of journals that have arrived to their end into entries of a list.
WITH ended AS (DELETE FROM journal_writers WHERE writer = ANY (%(writers)s::text[]) RETURNING writer, seq, home_id)
INSERT INTO journals_ended (bucket, home_id, writers, seqs)
SELECT left(ended.writer, 5), ended.home_id, array_agg(ended.writer ORDER BY ended.writer),
       array_agg(ended.seq ORDER BY ended.writer)
FROM ended GROUP BY 1, 2 ORDER BY 1, 2
ON CONFLICT (bucket, home_id) DO UPDATE
SET writers = excluded.writers || journals_ended.writers, seqs = excluded.seqs || journals_ended.seqs;


-- insert_dead_letter --
-- Keeps a record that Postgres rejects.
INSERT INTO dead_letters (writer, seq, payload, reason) VALUES (%(writer)s, %(seq)s, %(payload)s, %(reason)s)
ON CONFLICT (writer, seq) DO NOTHING;


-- list_dead_letters --
-- Which records were rejected, newest first?
SELECT id, writer, seq, octet_length(payload), reason, at FROM dead_letters
ORDER BY id DESC LIMIT %(limit)s::integer;


-- lock_watermarks --
-- How far have these journals arrived? Also the mutex between two processes that drain one. Where one had ended is asked
-- again: it may have between two statements.
SELECT known.writer,
       greatest(known.seq, (SELECT max(one.seq)
                            FROM journals_ended AS ended, unnest(ended.writers, ended.seqs) AS one (writer, seq)
                            WHERE ended.bucket = left(known.writer, 5) AND known.writer = ANY (ended.writers)
                              AND one.writer = known.writer))
FROM journal_writers AS known
WHERE known.writer = ANY (%(writers)s::text[])
ORDER BY known.writer FOR UPDATE OF known;


-- older_writers --
-- From which homes have processes delivered that do not know what is forgotten, since the tables know of versions?
SELECT known.home_id, max(known.updated_at)
FROM journal_writers AS known
WHERE known.schema_version = 0
  AND known.updated_at > (SELECT done.applied_at FROM hermes_pgvector_migrations AS done WHERE done.version = 1)
GROUP BY known.home_id ORDER BY 2 DESC, 1;


-- read_watermarks --
-- How far have these journals arrived? One that has ended, to where it did.
SELECT arrived.writer, max(arrived.seq)
FROM (
    SELECT known.writer, known.seq FROM journal_writers AS known WHERE known.writer = ANY (%(writers)s::text[])
    UNION ALL
    SELECT given.writer, one.seq
    FROM unnest(%(writers)s::text[]) AS given (writer)
    JOIN journals_ended AS ended ON ended.bucket = left(given.writer, 5) AND given.writer = ANY (ended.writers)
    CROSS JOIN LATERAL unnest(ended.writers, ended.seqs) AS one (writer, seq)
    WHERE one.writer = given.writer
) AS arrived
GROUP BY arrived.writer;


-- show_dead_letter --
-- What does this rejected record hold?
SELECT id, writer, seq, payload, reason, at FROM dead_letters WHERE id = %(id)s;
