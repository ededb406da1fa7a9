-- Keeps turns out of every search that an export says are; answers those that were not.
--
-- Arrays of equal length, one element per turn: themes, session_ids, digests (hex), ordinals, muted (times).
UPDATE conversations AS turn SET muted_at = given.muted_at, lexemes = ''::tsvector
FROM unnest(%(themes)s::text[], %(session_ids)s::text[], %(digests)s::text[], %(ordinals)s::integer[],
            %(muted)s::timestamptz[]) AS given (theme, session_id, digest, ordinal, muted_at)
WHERE turn.agent_identity = given.theme AND turn.session_id = given.session_id
  AND turn.digest = decode(given.digest, 'hex') AND turn.ordinal = given.ordinal AND turn.muted_at IS NULL
RETURNING turn.agent_identity, turn.id;
