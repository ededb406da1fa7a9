-- Takes back turns of a session that the user has undone.
--
-- digests, ordinals: two arrays, one element per turn. The ordinal 0 stands for words that the session has but once: how
-- often they were said before is not known, and a turn that might be another one stays.
DELETE FROM conversations AS turn
USING unnest(%(digests)s::text[], %(ordinals)s::integer[]) AS undone (digest, ordinal)
WHERE turn.agent_identity = %(theme)s AND turn.session_id = %(session_id)s AND turn.ts <= %(at)s::timestamptz
  AND turn.digest = decode(undone.digest, 'hex')
  AND (turn.ordinal = undone.ordinal
       OR undone.ordinal = 0 AND NOT EXISTS (
           SELECT FROM conversations AS other
           WHERE other.agent_identity = %(theme)s AND other.session_id = turn.session_id
             AND other.digest = turn.digest AND other.ordinal <> turn.ordinal));
