-- Stores a batch of turns, each once; answers the id and place in the batch of those that were new.
--
-- Arrays of equal length, one element per turn: themes, session_ids, roles, contents, ts, metadata (JSON text),
-- parent_session_ids (null or text), ordinals, lexemes (from searchtext.turn_lexemes; null lets the database
-- work out plainer ones).
WITH batch AS MATERIALIZED (
    SELECT nextval('conversations_id_seq') AS id, given.*
    FROM unnest(
        %(themes)b::text[], %(session_ids)b::text[], %(roles)b::text[], %(contents)b::text[], %(ts)s::timestamptz[],
        %(metadata)b::text[], %(parent_session_ids)s::text[], %(ordinals)s::integer[], %(lexemes)b::text[]
    ) WITH ORDINALITY AS given (theme, session_id, role, content, ts, metadata, parent_session_id, ordinal, lexemes, place)
), stored AS (
    INSERT INTO conversations
        (agent_identity, id, session_id, role, content, ts, metadata, parent_session_id, digest, ordinal, lexemes)
    SELECT theme, id, session_id, role, content, ts, metadata::jsonb, parent_session_id,
           hermes_turn_digest(role, content), ordinal, lexemes::tsvector
    FROM batch ORDER BY place
    ON CONFLICT (agent_identity, session_id, digest, ordinal) DO NOTHING
    RETURNING id
)
SELECT batch.place::integer AS place, batch.theme AS agent_identity, batch.id
FROM stored JOIN batch USING (id)
ORDER BY batch.place;
