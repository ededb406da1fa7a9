-- The identity of a text at any length; sha256 also works where md5 is forbidden by policy.
CREATE OR REPLACE FUNCTION hermes_digest(content text) RETURNS bytea
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
    AS $$ SELECT pg_catalog.sha256(pg_catalog.convert_to(content, 'UTF8')) $$;
