-- How many rows of each table of this schema hold one of these texts, in any spelling of case; -1 where the caller may not
-- look. What the planner remembers of rows counts as the table `pg_stats`.
CREATE OR REPLACE FUNCTION hermes_count_texts(needles text[]) RETURNS TABLE (table_name text, rows bigint)
    LANGUAGE plpgsql STABLE SET search_path FROM CURRENT
    AS $$
DECLARE
    looked    record;
    condition text;
BEGIN
    FOR looked IN
        SELECT c.oid, c.relname::text AS name,
               string_agg(CASE a.atttypid
                              WHEN 'bytea'::regtype
                              THEN format('position(convert_to(one.needle, ''UTF8'') in t.%I) > 0', a.attname)
                              ELSE format('strpos(lower(t.%I::text), lower(one.needle)) > 0', a.attname) END, ' OR ') AS finds
        FROM pg_catalog.pg_class AS c
        JOIN pg_catalog.pg_attribute AS a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
        WHERE c.relkind IN ('r', 'p') AND c.relnamespace = (SELECT relnamespace FROM pg_catalog.pg_class
                                                             WHERE oid = 'conversations'::regclass)
          AND a.atttypid IN (SELECT t.oid FROM pg_catalog.pg_type AS t
                             WHERE t.typname IN ('text', 'varchar', 'jsonb', 'json', 'bytea', 'tsvector', '_text', 'name'))
        GROUP BY c.oid, c.relname
    LOOP
        table_name := looked.name;
        rows := -1;
        IF has_table_privilege(looked.oid, 'SELECT') THEN
            EXECUTE format('SELECT count(*) FROM %s AS t WHERE EXISTS (SELECT FROM unnest($1) AS one (needle) WHERE %s)',
                           looked.oid::regclass, looked.finds) INTO rows USING needles;
        END IF;
        RETURN NEXT;
    END LOOP;
    table_name := 'pg_stats';
    SELECT count(*) INTO rows FROM pg_catalog.pg_stats AS s
    WHERE s.schemaname = (SELECT n.nspname FROM pg_catalog.pg_class AS c JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
                          WHERE c.oid = 'conversations'::regclass)
      AND EXISTS (SELECT FROM unnest(needles) AS one (needle)
                  WHERE strpos(lower(concat_ws(' ', s.most_common_vals::text, s.histogram_bounds::text,
                                               s.most_common_elems::text)), lower(one.needle)) > 0);
    RETURN NEXT;
END $$;
