-- How far have these journals arrived? Also the mutex between two processes that drain one. Whether one has ended is
-- asked again: it may have between two statements.
SELECT known.writer, known.seq FROM journal_writers AS known
WHERE known.writer = ANY (%(writers)s::text[])
  AND NOT EXISTS (SELECT FROM journals_ended AS ended
                  WHERE ended.bucket = left(known.writer, 5) AND known.writer = ANY (ended.writers))
ORDER BY known.writer FOR UPDATE OF known;
