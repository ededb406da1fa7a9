-- Drops functions by name, whatever their arguments, unless an index or a trigger depends on them.
DO $$
DECLARE
    former regprocedure;
BEGIN
    FOR former IN
        SELECT p.oid FROM pg_catalog.pg_proc AS p
        WHERE p.pronamespace = quote_ident(current_schema())::regnamespace AND p.proname = ANY ({names})
          AND NOT EXISTS (SELECT FROM pg_catalog.pg_depend AS d
                          WHERE d.refclassid = 'pg_catalog.pg_proc'::regclass AND d.refobjid = p.oid)
    LOOP
        EXECUTE 'DROP FUNCTION ' || former;
    END LOOP;
END
$$;
