-- The identity of words said by a role: 16 bytes are plenty within one session.
CREATE OR REPLACE FUNCTION hermes_turn_digest(role text, content text) RETURNS bytea
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
    AS $$ SELECT pg_catalog.substr(pg_catalog.sha256(pg_catalog.convert_to(role || ':' || content, 'UTF8')), 1, 16) $$;
