-- Works out anew what the planner and the search know of the words in the tables: a statistic may quote a row that is gone.
--
-- Runs with the owner's rights, so whoever calls it must not be able to choose what it means: the search_path has Postgres's
-- own catalog alone, and everything of ours is named with its schema.
CREATE OR REPLACE FUNCTION hermes_analyze() RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    AS $$
DECLARE
    analyzed record;
    is_empty boolean;
BEGIN
    FOR analyzed IN
        SELECT n.nspname::text AS place, c.relname::text AS name
        FROM pg_catalog.pg_class AS c JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
        WHERE n.nspname = {schema_name} AND c.relkind = 'r'
          AND EXISTS (SELECT FROM pg_catalog.pg_stats AS s WHERE s.schemaname = n.nspname AND s.tablename = c.relname)
    LOOP
        EXECUTE format('ANALYZE %I.%I', analyzed.place, analyzed.name);
        EXECUTE format('SELECT NOT EXISTS (SELECT FROM %I.%I)', analyzed.place, analyzed.name) INTO is_empty;
        -- ANALYZE leaves the statistics of an empty table as they were; before Postgres 18 only new rows change them.
        IF is_empty AND current_setting('server_version_num')::integer >= 180000 THEN
            EXECUTE format('SELECT pg_clear_attribute_stats(%L, %L, s.attname::text, s.inherited) FROM pg_stats AS s
                            WHERE s.schemaname = %L AND s.tablename = %L',
                           analyzed.place, analyzed.name, analyzed.place, analyzed.name);
        END IF;
        IF is_empty AND EXISTS (SELECT FROM pg_catalog.pg_stats_ext_exprs AS s WHERE s.statistics_schemaname = analyzed.place
                                AND s.statistics_name = analyzed.name || '_words') THEN
            EXECUTE format('DROP STATISTICS %1$I.%2$I', analyzed.place, analyzed.name || '_words');
            EXECUTE format('CREATE STATISTICS %1$I.%2$I ON (%1$I.hermes_words(lexemes)) FROM %1$I.%3$I',
                           analyzed.place, analyzed.name || '_words', analyzed.name);
            EXECUTE format('ALTER STATISTICS %I.%I SET STATISTICS 400', analyzed.place, analyzed.name || '_words');
        END IF;
    END LOOP;
    PERFORM {schema}.hermes_refresh_statistics();
END $$;
