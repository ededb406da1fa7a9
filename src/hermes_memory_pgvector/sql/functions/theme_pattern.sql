-- A granted theme as a pattern for LIKE: * stands for any letters, all others for themselves.
CREATE OR REPLACE FUNCTION hermes_theme_pattern(theme text) RETURNS text
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
    AS $$
    SELECT pg_catalog.replace(pg_catalog.regexp_replace(theme, '([\\%_])', '\\\1', 'g'), '*', '%')
    $$;
