-- The themes that the login of this session was granted by name, as far as its transaction is about them; with `writes`,
-- those it may change. Policies ask it; null for a login that was granted nothing.
--
-- Runs with the owner's rights, so whoever calls it must not be able to choose what it means: the search_path has Postgres's
-- own catalog alone, and everything of ours is named with its schema.
CREATE OR REPLACE FUNCTION hermes_login_themes(writes boolean) RETURNS text[]
    LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    AS $$
DECLARE
    purpose CONSTANT text := coalesce(current_setting('hermes.purpose', true), '');
    named   CONSTANT text[] := nullif(current_setting('hermes.themes', true), '')::text[];
BEGIN
    IF NOT EXISTS (SELECT FROM {schema}.login_grants AS g WHERE g.login = session_user AND (g.may_write OR NOT writes))
       OR writes AND purpose IN ('overview', 'everywhere') THEN
        RETURN NULL;
    END IF;
    IF purpose IN ('writer', 'upkeep', 'operator', 'overview') THEN
        RETURN ARRAY(SELECT t.theme FROM {schema}.login_themes AS t WHERE t.login = session_user);
    END IF;
    RETURN ARRAY(SELECT n.theme FROM unnest(named) AS n (theme)
                 WHERE EXISTS (SELECT FROM {schema}.login_themes AS t
                               WHERE t.login = session_user AND n.theme LIKE {schema}.hermes_theme_pattern(t.theme))
                 UNION
                 SELECT t.theme FROM {schema}.login_themes AS t
                 WHERE purpose = 'everywhere' AND t.login = session_user AND NOT {schema}.hermes_is_private(t.theme));
END $$;
