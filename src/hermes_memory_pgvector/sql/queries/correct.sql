-- drop_vectors_of_turn --
-- Drops the vectors of a turn.
DELETE FROM {turn_vectors} WHERE agent_identity = %(theme)s AND id = %(id)s;


-- edit_turn --
-- Gives a turn other words. Its digest stays that of the words once said, so that whoever reports those again adds nothing.
UPDATE conversations
SET content = %(content)s, metadata = metadata || %(metadata)s::jsonb,
    lexemes = CASE WHEN muted_at IS NULL THEN %(lexemes)s::tsvector ELSE ''::tsvector END
WHERE agent_identity = %(theme)s AND id = %(id)s AND content = %(former)s;


-- model_ids --
-- Every model that has vector tables.
SELECT id FROM embedding_models ORDER BY id;


-- mute_memory --
-- Keeps a memory out of every search.
UPDATE memory_entries SET muted_at = now(), lexemes = ''::tsvector
WHERE agent_identity = %(theme)s AND id = %(id)s AND muted_at IS NULL;


-- mute_turn --
-- Keeps a turn out of every search.
UPDATE conversations SET muted_at = now(), lexemes = ''::tsvector
WHERE agent_identity = %(theme)s AND id = %(id)s AND muted_at IS NULL;


-- turns_before --
-- The two turns before a turn in its session, oldest first.
SELECT earlier.content
FROM (SELECT turn.content, turn.ts, turn.id FROM conversations AS turn
      WHERE turn.agent_identity = %(theme)s AND turn.session_id = %(session_id)s
        AND (turn.ts, turn.id) < (%(at)s::timestamptz, %(id)s::bigint)
      ORDER BY turn.ts DESC, turn.id DESC LIMIT 2) AS earlier
ORDER BY earlier.ts, earlier.id;


-- unmute_memory --
-- Lets searches find a memory again.
UPDATE memory_entries SET muted_at = NULL, lexemes = %(lexemes)s::tsvector
WHERE agent_identity = %(theme)s AND id = %(id)s AND muted_at IS NOT NULL;


-- unmute_turn --
-- Lets searches find a turn again.
UPDATE conversations SET muted_at = NULL, lexemes = %(lexemes)s::tsvector
WHERE agent_identity = %(theme)s AND id = %(id)s AND muted_at IS NOT NULL;
