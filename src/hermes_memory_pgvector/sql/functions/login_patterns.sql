-- The patterns of themes that the login of this session was granted, for LIKE, if its transaction is about more than named
-- themes; with `writes`, those it may change. Policies ask it.
--
-- Runs with the owner's rights, so whoever calls it must not be able to choose what it means: the search_path has Postgres's
-- own catalog alone, and everything of ours is named with its schema.
CREATE OR REPLACE FUNCTION hermes_login_patterns(writes boolean) RETURNS text[]
    LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    AS $$
    SELECT array_agg({schema}.hermes_theme_pattern(t.theme))
    FROM {schema}.login_grants AS g JOIN {schema}.login_themes AS t ON t.login = g.login
    WHERE g.login = session_user AND strpos(t.theme, '*') > 0 AND (g.may_write OR NOT writes)
      AND current_setting('hermes.purpose', true) = ANY (CASE WHEN writes THEN ARRAY['writer', 'upkeep', 'operator']
                                                         ELSE ARRAY['writer', 'upkeep', 'operator', 'overview', 'everywhere'] END)
    $$;
