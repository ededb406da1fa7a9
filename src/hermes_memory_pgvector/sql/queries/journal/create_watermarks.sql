-- Makes sure that these journals have a watermark; one that has ended needs none.
INSERT INTO journal_writers (writer, seq, home_id)
SELECT given.writer, 0, %(home_id)s FROM unnest(%(writers)s::text[]) AS given (writer)
WHERE NOT EXISTS (SELECT FROM journals_ended AS ended
                  WHERE ended.bucket = left(given.writer, 5) AND given.writer = ANY (ended.writers))
ORDER BY given.writer
ON CONFLICT (writer) DO NOTHING;
