-- Notes how far the change to a model has come; answers nothing when it was cancelled.
UPDATE reembedding
SET seen_at = clock_timestamp(), done = %(done)s::bigint, total = %(total)s::bigint, rate = %(rate)s::real,
    problem = %(problem)s::text
WHERE model_id = %(model_id)s::integer
RETURNING model_id;
