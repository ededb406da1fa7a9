-- Makes sure that these journals have a watermark; one that had ended goes on from there.
INSERT INTO journal_writers (writer, seq, home_id, schema_version)
SELECT given.writer, coalesce(max(one.seq), 0), %(home_id)s, %(version)s
FROM unnest(%(writers)s::text[]) AS given (writer)
LEFT JOIN journals_ended AS ended ON ended.bucket = left(given.writer, 5) AND given.writer = ANY (ended.writers)
LEFT JOIN LATERAL unnest(ended.writers, ended.seqs) AS one (writer, seq) ON one.writer = given.writer
GROUP BY given.writer ORDER BY given.writer
ON CONFLICT (writer) DO NOTHING;
