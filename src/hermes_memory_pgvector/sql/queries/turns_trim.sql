-- Takes back what a session stored after the end of its transcript, which ends with one of the kept turns.
WITH kept AS (
    SELECT turn.ts, turn.id
    FROM unnest(%(digests)s::text[], %(ordinals)s::integer[]) AS still (digest, ordinal)
    JOIN conversations AS turn
      ON turn.agent_identity = %(theme)s AND turn.session_id = %(session_id)s
     AND turn.digest = decode(still.digest, 'hex') AND turn.ordinal = still.ordinal
    ORDER BY turn.ts DESC, turn.id DESC LIMIT 1
)
DELETE FROM conversations AS turn
WHERE turn.agent_identity = %(theme)s AND turn.session_id = %(session_id)s AND turn.ts < %(at)s::timestamptz
  AND ((cardinality(%(digests)s::text[]) = 0) OR (turn.ts, turn.id) > (SELECT ts, id FROM kept));
