-- takes from tables what is made anew after they were distributed: policies and views
DO $$
DECLARE
    found record;
BEGIN
    FOR found IN
        SELECT p.polname, p.polrelid::regclass AS name
        FROM pg_catalog.pg_policy AS p JOIN pg_catalog.pg_class AS c ON c.oid = p.polrelid
        WHERE c.relnamespace = quote_ident(current_schema())::regnamespace AND starts_with(p.polname, 'hermes_')
          AND NOT EXISTS (SELECT FROM pg_dist_partition AS d WHERE d.logicalrelid = p.polrelid)
    LOOP
        EXECUTE format('DROP POLICY %I ON %s', found.polname, found.name);
    END LOOP;
    DROP VIEW IF EXISTS memory_entries_embedded, conversations_embedded;
END
$$
