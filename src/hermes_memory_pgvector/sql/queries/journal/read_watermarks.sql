-- How far have these journals arrived? One that has ended, to its end.
SELECT known.writer, known.seq FROM journal_writers AS known WHERE known.writer = ANY (%(writers)s::text[])
UNION ALL
SELECT given.writer, 9223372036854775807 FROM unnest(%(writers)s::text[]) AS given (writer)
WHERE EXISTS (SELECT FROM journals_ended AS ended
              WHERE ended.bucket = left(given.writer, 5) AND given.writer = ANY (ended.writers));
