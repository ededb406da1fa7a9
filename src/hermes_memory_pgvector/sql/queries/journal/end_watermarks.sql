-- Turns the watermarks of journals that have arrived to their end into entries of a list.
WITH ended AS (DELETE FROM journal_writers WHERE writer = ANY (%(writers)s::text[]) RETURNING writer, seq, home_id)
INSERT INTO journals_ended (bucket, home_id, writers, seqs)
SELECT left(ended.writer, 5), ended.home_id, array_agg(ended.writer ORDER BY ended.writer),
       array_agg(ended.seq ORDER BY ended.writer)
FROM ended GROUP BY 1, 2 ORDER BY 1, 2
ON CONFLICT (bucket, home_id) DO UPDATE
SET writers = excluded.writers || journals_ended.writers, seqs = excluded.seqs || journals_ended.seqs;
