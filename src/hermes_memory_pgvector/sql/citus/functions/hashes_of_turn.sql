-- What a turn is known by among tombstones, as keyed hashes; aliases: the former names of themes. See queries/erase/left_turns.sql.
CREATE OR REPLACE FUNCTION hermes_hashes_of_turn(
    key bytea, aliases jsonb, theme text, session_id text, role text, content text, ts timestamptz, digest bytea, ordinal integer,
    metadata jsonb
) RETURNS bytea[]
    LANGUAGE sql STABLE PARALLEL SAFE SET search_path FROM CURRENT
    AS $$
    SELECT array_agg(hermes_tombstone(key, told.words)) FROM (
        SELECT spoken.words
        FROM (SELECT theme UNION ALL SELECT jsonb_array_elements_text(aliases -> theme)) AS named (theme),
             encode(coalesce(digest, hermes_turn_digest(role, content)), 'hex') AS said (digest),
             LATERAL (VALUES (ARRAY['turn', named.theme, content]),
                             (ARRAY['said', named.theme, session_id, said.digest]),
                             (ARRAY['occurrence', named.theme, session_id, said.digest, ordinal::text]),
                             (ARRAY['moment', named.theme, session_id, said.digest,
                                    (extract(epoch FROM ts) * 1000000)::bigint::text])) AS spoken (words)
        UNION ALL
        SELECT ARRAY['scope', place.theme, place.session_id]
        FROM (VALUES ('', ''), (theme, ''), ('', session_id), (theme, session_id)) AS place (theme, session_id)
        UNION ALL
        SELECT ARRAY['author', lower(value #>> '{{}}'), place.theme, place.session_id]
        FROM jsonb_path_query(metadata, '$.author.*') AS value,
             (VALUES ('', ''), (theme, ''), ('', session_id), (theme, session_id)) AS place (theme, session_id)
    ) AS told
    $$;
