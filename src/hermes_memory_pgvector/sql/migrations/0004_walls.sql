-- The functions that run with the owner's rights are made anew by this migration (see definer.sql), and those that name a
-- search_path look into this schema and pgvector's only, whatever else the login that first made them looked into.
DO $walls$
DECLARE
    own regprocedure;
BEGIN
    FOR own IN SELECT p.oid FROM pg_proc AS p
               WHERE p.pronamespace = quote_ident(current_schema())::regnamespace AND starts_with(p.proname, 'hermes_')
                 AND EXISTS (SELECT FROM unnest(p.proconfig) AS setting WHERE starts_with(setting, 'search_path=')) LOOP
        EXECUTE format('ALTER FUNCTION %s SET search_path FROM CURRENT', own);
    END LOOP;
END
$walls$;
