-- On a worker: takes away what is known of a shard's tables that have become empty, which ANALYZE leaves as it was; before
-- Postgres 18 only new rows change that.
CREATE OR REPLACE FUNCTION hermes_clear_empty(shard bigint) RETURNS integer
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp
    AS $$
DECLARE
    known    record;
    is_empty boolean;
    cleared  integer := 0;
BEGIN
    IF current_setting('server_version_num')::integer < 180000 THEN
        RETURN 0;
    END IF;
    FOR known IN
        SELECT s.schemaname::text AS place, s.tablename::text AS name
        FROM pg_dist_shard AS own
        JOIN pg_dist_shard AS other ON other.shardminvalue = own.shardminvalue
        JOIN pg_catalog.pg_class AS c ON c.oid = other.logicalrelid
        JOIN pg_catalog.pg_stats AS s ON s.schemaname = {schema_name} AND s.tablename = c.relname || '_' || other.shardid
        WHERE own.shardid = shard AND c.relnamespace = quote_ident({schema_name})::regnamespace
        GROUP BY 1, 2
    LOOP
        EXECUTE format('SELECT NOT EXISTS (SELECT FROM %I.%I)', known.place, known.name) INTO is_empty;
        IF is_empty THEN
            EXECUTE format('SELECT pg_clear_attribute_stats(%L, %L, s.attname::text, s.inherited) FROM pg_stats AS s
                            WHERE s.schemaname = %L AND s.tablename = %L', known.place, known.name, known.place, known.name);
            cleared := cleared + 1;
        END IF;
    END LOOP;
    RETURN cleared;
END $$;
