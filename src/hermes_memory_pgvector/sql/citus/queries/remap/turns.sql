-- The next turns of a theme that is being moved, each with what the other theme has under its key: whether it is the same
-- saying (no more than `window` seconds apart; null when the key is free), and how often the words were said there.
--
-- All occurrences of the same words in a session come together, so none is compared with one that was moved before.
WITH page AS MATERIALIZED (
    SELECT turn.id, turn.session_id, turn.digest FROM conversations AS turn
    WHERE turn.agent_identity = %(theme)s
    ORDER BY turn.id LIMIT %(limit)s::integer
), same AS MATERIALIZED (
    SELECT other.session_id, other.digest, other.ordinal, other.ts FROM conversations AS other
    WHERE other.agent_identity = %(other)s
      AND (other.session_id, other.digest) IN (SELECT page.session_id, page.digest FROM page)
)
SELECT turn.id, turn.ordinal,
       (SELECT abs(extract(epoch FROM same.ts - turn.ts)) <= %(window)s::double precision FROM same
        WHERE same.session_id = turn.session_id AND same.digest = turn.digest AND same.ordinal = turn.ordinal),
       (SELECT max(same.ordinal) FROM same WHERE same.session_id = turn.session_id AND same.digest = turn.digest),
       turn.session_id, turn.digest
FROM conversations AS turn
WHERE turn.agent_identity = %(theme)s
  AND (turn.id IN (SELECT page.id FROM page)
       OR (turn.session_id, turn.digest) IN (SELECT page.session_id, page.digest FROM page WHERE page.digest IS NOT NULL))
ORDER BY turn.id;
