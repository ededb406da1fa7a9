-- A granted theme as a pattern for LIKE: * stands for any letters, all others for themselves.
--
-- The literals are E'' ones: those mean the same whatever the session's standard_conforming_strings, which anybody may set.
CREATE OR REPLACE FUNCTION hermes_theme_pattern(theme text) RETURNS text
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
    AS $$
    SELECT pg_catalog.replace(pg_catalog.regexp_replace(theme, E'([\\\\%_])', E'\\\\\\1', 'g'), '*', '%')
    $$;
