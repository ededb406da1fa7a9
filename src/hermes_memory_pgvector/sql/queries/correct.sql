-- drop_vectors_of_turn --
-- Drops the vectors of a turn.
DELETE FROM {turn_vectors} WHERE agent_identity = %(theme)s AND id = %(id)s;


-- edit_turn --
-- Gives a turn other words. Its digest stays that of the words once said, so that whoever reports those again adds nothing.
UPDATE conversations
SET content = %(content)s, metadata = metadata || %(metadata)s::jsonb
WHERE agent_identity = %(theme)s AND id = %(id)s AND content = %(former)s;


-- model_ids --
-- Every model that has vector tables.
SELECT id FROM embedding_models ORDER BY id;
