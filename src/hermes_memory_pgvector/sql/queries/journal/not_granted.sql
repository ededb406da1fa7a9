-- Rejected records of this login whose theme it was not granted, in the order in which they came: number and payload.
SELECT id, payload FROM dead_letters
WHERE login = session_user AND id > %(after)s::bigint AND reason LIKE '%%' || %(told)s::text || '%%'
ORDER BY id LIMIT %(limit)s::integer;
