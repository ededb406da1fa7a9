-- Which of these hashes are tombstones, and until when is what they stand for forgotten?
SELECT hash, max(forgotten_at) FROM tombstones WHERE hash = ANY (%(hashes)s::bytea[]) GROUP BY hash;
