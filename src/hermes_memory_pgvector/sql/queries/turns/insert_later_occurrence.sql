-- Stores a turn whose key is taken as a later occurrence of the same words, unless the same moment is reported again.
WITH earlier AS (
    SELECT coalesce(max(ordinal), 0) AS last,
           coalesce(bool_or(abs(extract(epoch FROM ts - %(ts)s::timestamptz)) <= %(window)s::double precision), false)
               AS is_known
    FROM conversations
    WHERE agent_identity = %(theme)s AND session_id = %(session_id)s
      AND digest = coalesce(decode(nullif(%(digest)s, ''), 'hex'), hermes_turn_digest(%(role)s, %(content)s))
)
INSERT INTO conversations
    (agent_identity, session_id, role, content, ts, metadata, parent_session_id, digest, ordinal, lexemes, home_id, origin,
     trust)
SELECT %(theme)s, %(session_id)s, %(role)s, %(content)s, %(ts)s::timestamptz, %(metadata)s::jsonb,
       %(parent_session_id)s, coalesce(decode(nullif(%(digest)s, ''), 'hex'), hermes_turn_digest(%(role)s, %(content)s)),
       earlier.last + 1, %(lexemes)s::tsvector, nullif(%(home_id)s, ''), %(origin)s::text, %(trust)s::text
FROM earlier WHERE NOT earlier.is_known
ON CONFLICT (agent_identity, session_id, digest, ordinal) DO NOTHING
RETURNING id;
