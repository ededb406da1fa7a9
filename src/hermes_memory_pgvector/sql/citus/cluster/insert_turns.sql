-- Stores a batch of turns, each once; returns the ids of those that were new. See queries/turns/insert, of which this is
-- the one part that the workers do: what is prepared in a part of a statement is sent to every worker, also to those that
-- have none of its themes.
INSERT INTO conversations
    (agent_identity, id, session_id, role, content, ts, metadata, parent_session_id, digest, ordinal, lexemes, home_id,
     origin, trust)
SELECT theme, id, session_id, role, content, ts, metadata::jsonb, nullif(parent_session_id, ''),
       coalesce(decode(nullif(digest, ''), 'hex'), hermes_turn_digest(role, content)), ordinal, lexemes,
       nullif(home_id, ''), nullif(origin, ''), nullif(trust, '')
FROM unnest(
    %(themes)b::text[], %(ids)s::bigint[], %(session_ids)b::text[], %(roles)b::text[], %(contents)b::text[],
    %(ts)b::timestamptz[], %(metadata)b::text[], %(parent_session_ids)b::text[], %(digests)b::text[],
    %(ordinals)b::integer[], %(lexemes)b::tsvector[], %(home_ids)b::text[], %(origins)b::text[], %(trusts)b::text[]
) AS given (theme, id, session_id, role, content, ts, metadata, parent_session_id, digest, ordinal, lexemes, home_id, origin,
            trust)
ON CONFLICT (agent_identity, session_id, digest, ordinal) DO NOTHING
RETURNING id;
