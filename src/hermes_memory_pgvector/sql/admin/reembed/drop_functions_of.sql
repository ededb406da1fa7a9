-- drops our functions that search these two tables, so that nothing of ours depends on them
DO $$
DECLARE
    own regprocedure;
BEGIN
    FOR own IN SELECT p.oid FROM pg_catalog.pg_proc AS p
               JOIN pg_catalog.pg_class AS c ON c.reltype = p.proargtypes[0]
               WHERE starts_with(p.proname, 'hermes_') AND p.pronamespace = c.relnamespace
                 AND c.relnamespace = quote_ident(current_schema())::regnamespace
                 AND c.relname IN ({turn_vectors}, {memory_vectors}) LOOP
        EXECUTE format('DROP FUNCTION %s', own);
    END LOOP;
END
$$;
