-- Sets tombstones.
INSERT INTO tombstones (hash, receipt_id, forgotten_at)
SELECT hash, %(receipt)s, %(at)s::timestamptz FROM unnest(%(hashes)s::bytea[]) AS given (hash)
ON CONFLICT (hash, receipt_id) DO NOTHING;
