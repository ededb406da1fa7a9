-- The quarantines that concern the login of this session: those of its themes, and those that hold rows of them. Others name
-- sessions and themes that are not its business.
--
-- Runs with the owner's rights, so whoever calls it must not be able to choose what it means: the search_path has Postgres's
-- own catalog alone, and everything of ours is named with its schema.
CREATE OR REPLACE FUNCTION hermes_login_quarantines() RETURNS bigint[]
    LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    AS $$
DECLARE
    granted CONSTANT text[] := {schema}.hermes_granted_themes();
BEGIN
    RETURN ARRAY(SELECT made.id FROM {schema}.quarantines AS made
                 WHERE made.theme LIKE ANY (granted)
                    OR EXISTS (SELECT FROM {schema}.quarantined_turns AS held
                               WHERE held.quarantine_id = made.id AND held.agent_identity LIKE ANY (granted))
                    OR EXISTS (SELECT FROM {schema}.quarantined_memories AS held
                               WHERE held.quarantine_id = made.id AND held.agent_identity LIKE ANY (granted)));
END $$;
