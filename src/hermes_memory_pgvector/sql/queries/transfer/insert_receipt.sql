-- Brings a receipt here, with the key of its tombstones where that is another one than this database's.
INSERT INTO erasure_receipts (forgotten_at, actor, home_id, named, finished_at, counts, unreached, key)
SELECT %(at)s, %(actor)s, %(home_id)s, %(named)s::text[], %(finished_at)s::timestamptz, %(counts)s::jsonb,
       %(unreached)s::text[], nullif(%(key)s::bytea, own.key)
FROM erasure_key AS own
RETURNING id;
