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
