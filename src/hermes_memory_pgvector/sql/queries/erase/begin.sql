-- Begins a receipt; nothing that was said later than its time is forgotten. The server's clock says when that is: the
-- operator's may be far ahead, and what is said until then is new.
INSERT INTO erasure_receipts (forgotten_at, actor, home_id, named, request, horizon)
VALUES (clock_timestamp(), %(actor)s, %(home_id)s, %(named)s::text[], %(request)s::bytea, %(horizon)s::bigint[])
RETURNING id, forgotten_at;
