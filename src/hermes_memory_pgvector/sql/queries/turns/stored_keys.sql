-- What identifies the turns stored in these sessions of these themes, and when each was said.
SELECT agent_identity, session_id, encode(digest, 'hex'), ordinal, (extract(epoch FROM ts) * 1000000)::bigint
FROM conversations
WHERE agent_identity = ANY(%(themes)b::text[]) AND session_id = ANY(%(session_ids)b::text[]) AND digest IS NOT NULL;
