-- Estimates of a plan come from statistics over all rows, and tell whoever may explain a plan which texts are common. Nothing
-- is planned by texts, so there are no statistics of them.
ALTER TABLE conversations ALTER COLUMN content SET STATISTICS 0;
ALTER TABLE memory_entries ALTER COLUMN content SET STATISTICS 0;
ALTER TABLE memory_operations ALTER COLUMN content SET STATISTICS 0, ALTER COLUMN old_text SET STATISTICS 0,
    ALTER COLUMN previous SET STATISTICS 0;
ALTER TABLE recall_log ALTER COLUMN query SET STATISTICS 0;
DO $$
DECLARE
    known record;
BEGIN
    -- Before Postgres 18 only a superuser can take away those that are there.
    FOR known IN SELECT a.attrelid, a.attnum, c.relname::text AS name, a.attname::text AS column
                 FROM pg_attribute AS a JOIN pg_class AS c ON c.oid = a.attrelid
                 WHERE a.attrelid IN ('conversations'::regclass, 'memory_entries'::regclass, 'memory_operations'::regclass,
                                      'recall_log'::regclass)
                   AND a.attname IN ('content', 'old_text', 'previous', 'query') LOOP
        IF current_setting('server_version_num')::integer >= 180000 THEN
            EXECUTE format('SELECT pg_clear_attribute_stats(%L, %L, %L, false)', current_schema(), known.name, known.column);
        ELSIF (SELECT rolsuper FROM pg_roles WHERE rolname = current_user) THEN
            DELETE FROM pg_statistic WHERE starelid = known.attrelid AND staattnum = known.attnum;
        END IF;
    END LOOP;
END
$$;
