-- drop_vectors_of_turn --
-- Drops the vectors of a turn.
DELETE FROM {turn_vectors} WHERE agent_identity = %(theme)s AND id = %(id)s;


-- edit_turn --
-- Gives a turn other words. Its digest stays that of the words once said, so that whoever reports those again adds nothing.
UPDATE conversations
SET content = %(content)s, metadata = metadata || %(metadata)s::jsonb,
    lexemes = CASE WHEN hidden_by IS NULL THEN %(lexemes)s::tsvector ELSE ''::tsvector END
WHERE agent_identity = %(theme)s AND id = %(id)s AND content = %(former)s;


-- model_ids --
-- Every model that has vector tables.
SELECT id FROM embedding_models ORDER BY id;


-- turns_before --
-- The two turns before a turn in its session, oldest first.
SELECT earlier.content
FROM (SELECT turn.content, turn.ts, turn.id FROM conversations AS turn
      WHERE turn.agent_identity = %(theme)s AND turn.session_id = %(session_id)s
        AND (turn.ts, turn.id) < (%(at)s::timestamptz, %(id)s::bigint)
      ORDER BY turn.ts DESC, turn.id DESC LIMIT 2) AS earlier
ORDER BY earlier.ts, earlier.id;
