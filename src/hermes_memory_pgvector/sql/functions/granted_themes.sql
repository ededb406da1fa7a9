-- The themes that the login of this session was granted, as patterns for LIKE, whatever its transaction is about.
--
-- Runs with the owner's rights, so whoever calls it must not be able to choose what it means: the search_path has Postgres's
-- own catalog alone, and everything of ours is named with its schema.
CREATE OR REPLACE FUNCTION hermes_granted_themes() RETURNS text[]
    LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    AS $$ SELECT ARRAY(SELECT {schema}.hermes_theme_pattern(t.theme) FROM {schema}.login_themes AS t WHERE t.login = session_user) $$;
