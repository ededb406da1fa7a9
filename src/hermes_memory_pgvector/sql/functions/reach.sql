-- What the transaction may read, for functions that run as the owner and check by themselves.
--
-- is_open: everything; is_public: every theme that is not private, and `themes`. patterns: for LIKE. The same rules as in
-- sql/policies.sql. Called as the owner; whoever may act as the owner sees everything.
CREATE OR REPLACE FUNCTION hermes_reach(OUT is_open boolean, OUT is_public boolean, OUT themes text[], OUT patterns text[])
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp
    AS $$
DECLARE
    purpose CONSTANT text := coalesce(current_setting('hermes.purpose', true), '');
BEGIN
    is_open := pg_has_role(session_user, current_user, 'MEMBER');
    is_public := false;
    IF EXISTS (SELECT FROM {schema}.login_grants AS g WHERE g.login = session_user) THEN
        themes := {schema}.hermes_login_themes(false);
        patterns := {schema}.hermes_login_patterns(false);
    ELSE
        is_open := is_open OR purpose IN ('writer', 'upkeep', 'operator', 'overview');
        is_public := purpose = 'everywhere';
        themes := nullif(current_setting('hermes.themes', true), '')::text[];
    END IF;
END $$;
