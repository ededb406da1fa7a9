-- What runs with the owner's rights is for the roles that run agents (see grants.sql), not for everybody who can connect;
-- what the statistics of words are counted by, for the owner alone.
DO $$
DECLARE
    own regprocedure;
BEGIN
    FOR own IN SELECT p.oid FROM pg_proc AS p
               WHERE (p.prosecdef OR p.proname = 'hermes_words') AND starts_with(p.proname, 'hermes_')
                 AND p.pronamespace = quote_ident(current_schema())::regnamespace LOOP
        EXECUTE format('REVOKE EXECUTE ON FUNCTION %s FROM PUBLIC', own);
    END LOOP;
END
$$;
