-- Notes how far these journals have arrived.
UPDATE journal_writers AS known SET seq = arrived.seq, updated_at = now(), schema_version = %(version)s
FROM unnest(%(writers)s::text[], %(seqs)s::bigint[]) AS arrived (writer, seq)
WHERE known.writer = arrived.writer;
