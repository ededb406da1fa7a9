-- Begins a receipt; nothing that was said later than its time is forgotten.
INSERT INTO erasure_receipts (forgotten_at, actor, home_id, named)
VALUES (greatest(clock_timestamp(), %(now)s::timestamptz), %(actor)s, %(home_id)s, %(named)s::text[])
RETURNING id, forgotten_at;
