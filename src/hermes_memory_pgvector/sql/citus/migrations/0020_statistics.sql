-- As migrations/0020 says, of the tables that the coordinator has alone. Those of the workers keep their statistics: Citus
-- takes no such change of a distributed table, and there is no login there that is kept from the rows of others.
DO $$
DECLARE
    known record;
BEGIN
    FOR known IN
        SELECT c.oid::regclass AS place, c.relname::text AS relation, a.attname::text AS name
        FROM pg_attribute AS a JOIN pg_class AS c ON c.oid = a.attrelid
        WHERE c.relnamespace = quote_ident(current_schema())::regnamespace AND c.relkind = 'r' AND a.attnum > 0
          AND NOT a.attisdropped AND a.attname IN ('entries', 'withheld', 'payload', 'reason', 'subject', 'counts')
          AND NOT EXISTS (SELECT FROM pg_dist_partition AS spread WHERE spread.logicalrelid = c.oid)
          AND c.relname !~ '_[0-9]+$'
    LOOP
        EXECUTE format('ALTER TABLE %s ALTER COLUMN %I SET STATISTICS 0', known.place, known.name);
        -- Before Postgres 18 only a superuser can take away those that are there.
        IF current_setting('server_version_num')::integer >= 180000 THEN
            EXECUTE format('SELECT pg_clear_attribute_stats(%L, %L, %L, false)', current_schema(), known.relation, known.name);
        END IF;
    END LOOP;
END
$$;
