-- Stores a batch of turns, each once, and enqueues those that want a vector; returns the place in the batch and the id
-- of those that were new.
--
-- Arrays of equal length, one element per turn: themes, session_ids, roles, contents, ts, metadata (JSON text),
-- parent_session_ids (empty where there is none), digests (hex; empty where it is the content's), ordinals, lexemes (from
-- text.lexemes.lexemes_of; null lets the database work out plainer ones), wishes (whether the turn wants a vector),
-- home_ids, origins, trusts (empty where not known).
WITH batch AS MATERIALIZED (
    SELECT nextval('conversations_id_seq') AS id, given.*
    FROM unnest(
        %(themes)b::text[], %(session_ids)b::text[], %(roles)b::text[], %(contents)b::text[], %(ts)b::timestamptz[],
        %(metadata)b::text[], %(parent_session_ids)b::text[], %(digests)b::text[], %(ordinals)b::integer[],
        %(lexemes)b::tsvector[], %(wishes)b::boolean[], %(home_ids)b::text[], %(origins)b::text[], %(trusts)b::text[]
    ) WITH ORDINALITY AS given (theme, session_id, role, content, ts, metadata, parent_session_id, digest, ordinal,
                                lexemes, wants_vector, home_id, origin, trust, place)
), stored AS (
    INSERT INTO conversations
        (agent_identity, id, session_id, role, content, ts, metadata, parent_session_id, digest, ordinal, lexemes, home_id,
         origin, trust)
    SELECT theme, id, session_id, role, content, ts, metadata::jsonb, nullif(parent_session_id, ''),
           coalesce(decode(nullif(digest, ''), 'hex'), hermes_turn_digest(role, content)), ordinal, lexemes,
           nullif(home_id, ''), nullif(origin, ''), nullif(trust, '')
    FROM batch ORDER BY place
    ON CONFLICT (agent_identity, session_id, digest, ordinal) DO NOTHING
    RETURNING id
), enqueued AS (
    INSERT INTO pending_vectors (agent_identity, kind, id)
    SELECT batch.theme, 'turn', batch.id FROM stored JOIN batch USING (id) WHERE batch.wants_vector
)
SELECT batch.place::integer AS place, batch.id FROM stored JOIN batch USING (id) ORDER BY batch.place;
