-- Stores a turn whose key is taken as a further saying of the same words, unless it is the same moment reported again.
WITH said AS (
    SELECT coalesce(max(ordinal), 0) AS last,
           coalesce(bool_or(abs(extract(epoch FROM ts - %(ts)s::timestamptz)) <= %(window)s::double precision), false)
               AS is_known
    FROM conversations
    WHERE agent_identity = %(theme)s AND session_id = %(session_id)s
      AND digest = hermes_turn_digest(%(role)s, %(content)s)
)
INSERT INTO conversations
    (agent_identity, session_id, role, content, ts, metadata, parent_session_id, digest, ordinal, lexemes)
SELECT %(theme)s, %(session_id)s, %(role)s, %(content)s, %(ts)s::timestamptz, %(metadata)s::jsonb,
       %(parent_session_id)s, hermes_turn_digest(%(role)s, %(content)s), said.last + 1, %(lexemes)s::tsvector
FROM said WHERE NOT said.is_known
ON CONFLICT (agent_identity, session_id, digest, ordinal) DO NOTHING
RETURNING id;
