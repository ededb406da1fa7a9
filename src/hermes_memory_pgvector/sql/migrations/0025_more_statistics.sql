-- Estimates of a plan tell whoever may ask for one what the rows of others hold. So there are no statistics of where
-- processes run and how they are doing, nor of the keys, hashes and names of what was forgotten: no plan needs them.
DO $$
DECLARE
    known record;
BEGIN
    FOR known IN
        SELECT c.oid::regclass AS place, c.relname::text AS relation, a.attname::text AS name, a.attnum AS number
        FROM pg_attribute AS a JOIN pg_class AS c ON c.oid = a.attrelid
        WHERE c.relnamespace = quote_ident(current_schema())::regnamespace AND a.attnum > 0 AND NOT a.attisdropped AND c.relkind IN ('r', 'p')
          AND (c.relname::text, a.attname::text) IN (
              ('agent_processes', 'host'), ('agent_processes', 'home'), ('agent_processes', 'command'), ('agent_processes', 'state'),
              ('agent_processes', 'counters'), ('past_processes', 'counters'), ('agents', 'host'),
              ('erasure_receipts', 'named'), ('erasure_receipts', 'unreached'), ('erasure_receipts', 'key'),
              ('erasure_receipts', 'request'), ('erasure_key', 'key'), ('tombstones', 'hash'), ('reembedding', 'problem'))
    LOOP
        EXECUTE format('ALTER TABLE %s ALTER COLUMN %I SET STATISTICS 0', known.place, known.name);
        -- Before Postgres 18 only a superuser can take away those that are there.
        IF current_setting('server_version_num')::integer >= 180000 THEN
            EXECUTE format('SELECT pg_clear_attribute_stats(%L, %L, %L, false)', current_schema(), known.relation, known.name);
        ELSIF (SELECT rolsuper FROM pg_roles WHERE rolname = current_user) THEN
            DELETE FROM pg_statistic WHERE starelid = known.place::oid AND staattnum = known.number;
        END IF;
    END LOOP;
END
$$;
