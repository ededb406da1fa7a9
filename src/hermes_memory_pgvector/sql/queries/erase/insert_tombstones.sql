-- Sets tombstones; lengths are those of texts that are looked for as parts of others, null for everything else.
INSERT INTO tombstones (hash, receipt_id, forgotten_at, part_length)
SELECT hash, %(receipt)s, %(at)s::timestamptz, length
FROM unnest(%(hashes)s::bytea[], %(lengths)s::integer[]) AS given (hash, length)
ON CONFLICT DO NOTHING;
