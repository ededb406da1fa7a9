-- advance_mark --
-- Notes how far this journal has arrived.
UPDATE journal_writers SET position = %(position)s, updated_at = %(now)s WHERE writer = %(writer)s;


-- create_mark --
-- Makes sure that this journal has a mark.
INSERT INTO journal_writers (writer, home_id) VALUES (%(writer)s, %(home_id)s) ON CONFLICT (writer) DO NOTHING;


-- drop_dead_letter --
-- Deletes a rejected record.
DELETE FROM dead_letters WHERE id = %(id)s::bigint;


-- insert_dead_letter --
-- Keeps a record that Postgres rejects.
INSERT INTO dead_letters (writer, position, payload, reason) VALUES (%(writer)s, %(position)s, %(payload)s, %(reason)s)
ON CONFLICT (writer, position) DO NOTHING;


-- list_dead_letters --
-- Which records were rejected, newest first?
SELECT id, writer, position, octet_length(payload), reason, at FROM dead_letters
ORDER BY id DESC LIMIT %(limit)s::integer;


-- lock_mark --
-- How far has this journal arrived? Also the mutex between two processes that drain one.
SELECT position FROM journal_writers WHERE writer = %(writer)s FOR UPDATE;


-- read_marks --
-- How far have these journals arrived?
SELECT writer, position FROM journal_writers WHERE writer = ANY (%(writers)s::text[]);


-- show_dead_letter --
-- What does this rejected record hold?
SELECT id, writer, position, octet_length(payload), reason, at, payload FROM dead_letters WHERE id = %(id)s;
