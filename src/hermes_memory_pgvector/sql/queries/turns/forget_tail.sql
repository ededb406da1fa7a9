-- Takes back the last exchanges that a session had stored when it was resumed, and that its transcript no longer has.
--
-- digests, ordinals (two arrays: turns that the transcript still has; the ordinal 0 stands for any saying of the words),
-- at (when the session was resumed), exchanges (how many may go). Only what was stored after each of the
-- kept turns can have been undone; where none of them is stored, nothing goes.
WITH kept AS (
    SELECT turn.ts, turn.id
    FROM unnest(%(digests)s::text[], %(ordinals)s::integer[]) AS still (digest, ordinal)
    JOIN conversations AS turn
      ON turn.agent_identity = %(theme)s AND turn.session_id = %(session_id)s
     AND turn.digest = decode(still.digest, 'hex') AND still.ordinal IN (turn.ordinal, 0)
    ORDER BY turn.ts DESC, turn.id DESC LIMIT 1
), asked AS (
    SELECT turn.ts, turn.id
    FROM conversations AS turn, kept
    WHERE turn.agent_identity = %(theme)s AND turn.session_id = %(session_id)s AND turn.ts <= %(at)s::timestamptz
      AND turn.role = 'user' AND (turn.ts, turn.id) > (kept.ts, kept.id)
    ORDER BY turn.ts DESC, turn.id DESC LIMIT %(exchanges)s::integer
), first_asked AS (
    SELECT ts, id FROM asked ORDER BY ts, id LIMIT 1
)
DELETE FROM conversations AS turn
USING first_asked
WHERE turn.agent_identity = %(theme)s AND turn.session_id = %(session_id)s AND turn.ts <= %(at)s::timestamptz
  AND turn.role IN ('user', 'assistant') AND (turn.ts, turn.id) >= (first_asked.ts, first_asked.id);
