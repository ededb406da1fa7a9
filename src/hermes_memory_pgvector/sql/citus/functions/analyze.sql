-- Works out anew what the planner and the search know of the words in the tables, on every node: a statistic may quote a row
-- that is gone.
--
-- Runs with the owner's rights, so whoever calls it must not be able to choose what it means: the search_path has Postgres's
-- own catalog alone, and everything of ours is named with its schema.
CREATE OR REPLACE FUNCTION hermes_analyze() RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    AS $$
DECLARE
    analyzed record;
BEGIN
    FOR analyzed IN
        SELECT n.nspname::text AS place, c.relname::text AS name
        FROM pg_catalog.pg_class AS c JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
        WHERE n.nspname = {schema_name} AND c.relkind = 'r'
          AND (EXISTS (SELECT FROM pg_dist_partition AS d WHERE d.logicalrelid = c.oid AND d.partmethod = 'h')
               OR EXISTS (SELECT FROM pg_catalog.pg_stats AS s WHERE s.schemaname = n.nspname AND s.tablename = c.relname))
    LOOP
        EXECUTE format('ANALYZE %I.%I', analyzed.place, analyzed.name);
    END LOOP;
    PERFORM cleared.done FROM {schema}.shard_anchors AS anchor
    CROSS JOIN LATERAL {schema}.hermes_clear_empty(anchor.shard_id) AS cleared (done);
    PERFORM {schema}.hermes_refresh_statistics();
END $$;
