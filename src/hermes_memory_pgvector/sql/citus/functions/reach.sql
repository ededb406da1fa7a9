-- What the transaction may read, for functions that run as the owner and check by themselves; see functions/reach.sql.
--
-- No login is granted single themes in a distributed database, so there is none to ask for.
CREATE OR REPLACE FUNCTION hermes_reach(OUT is_open boolean, OUT is_public boolean, OUT themes text[], OUT patterns text[])
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp
    AS $$
DECLARE
    purpose CONSTANT text := coalesce(current_setting('hermes.purpose', true), '');
BEGIN
    is_open := pg_has_role(session_user, current_user, 'MEMBER') OR purpose IN ('writer', 'upkeep', 'operator', 'overview');
    is_public := purpose = 'everywhere';
    themes := nullif(current_setting('hermes.themes', true), '')::text[];
END $$;
