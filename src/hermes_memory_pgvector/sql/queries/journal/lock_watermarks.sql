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
