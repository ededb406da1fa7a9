-- Which of these hashes are tombstones, and until when is what they stand for forgotten?
SELECT known.hash, known.until FROM hermes_forgotten(%(hashes)s::bytea[]) AS known;
