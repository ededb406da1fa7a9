-- What words in a theme's memories are known by among tombstones, as keyed hashes; aliases: the former names of themes.
--
-- in_session: whether it goes with the session it was said in; see queries/erase/left_history.sql.
CREATE OR REPLACE FUNCTION hermes_hashes_of_memory(
    key bytea, aliases jsonb, theme text, target text, texts text[], session_id text, in_session boolean
) RETURNS bytea[]
    LANGUAGE sql STABLE PARALLEL SAFE SET search_path FROM CURRENT
    AS $$
    SELECT array_agg(hermes_tombstone(key, told.words)) FROM (
        SELECT spoken.words
        FROM (SELECT theme UNION ALL SELECT jsonb_array_elements_text(aliases -> theme)) AS named (theme),
             unnest(texts) AS said (text),
             LATERAL (VALUES (ARRAY['memory', named.theme, target, said.text]),
                             (ARRAY['noted', named.theme, target, session_id, said.text])) AS spoken (words)
        WHERE said.text <> ''
        UNION ALL
        SELECT ARRAY['scope', place.theme, place.session_id]
        FROM (VALUES ('', ''), (theme, ''), ('', session_id), (theme, session_id)) AS place (theme, session_id)
        WHERE place.session_id = '' OR in_session
    ) AS told
    $$;
