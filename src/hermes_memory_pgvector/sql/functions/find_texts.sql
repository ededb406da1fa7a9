-- How many rows of each table of this schema hold one of these texts, in any case: in what was said up to a time, later, and
-- in names alone (themes, sessions, homes, people); -1 where the caller may not look. themes: only these; null for all. What
-- the planner remembers of rows counts as the table `pg_stats`.
CREATE OR REPLACE FUNCTION hermes_find_texts(
    needles text[], themes text[] DEFAULT NULL, until timestamptz DEFAULT 'infinity',
    OUT table_name text, OUT rows bigint, OUT newer bigint, OUT in_names bigint) RETURNS SETOF record
    LANGUAGE plpgsql STABLE SET search_path FROM CURRENT
    AS $$
DECLARE
    names  constant text[] := '{{agent_identity,session_id,child_session_id,parent_session_id,home_id,writer,writers,bucket,login,
                                actor,theme,subject,named,unreached,old,new,scope,name,action,caller,kind,role,target,origin,
                                source,sha256,counts,trust}}';
    stamps constant text := '- ''{{session_id,parent_session_id,delegated_to}}''::text[]';
    looked record;
    place  name := (SELECT n.nspname FROM pg_catalog.pg_class AS c JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
                    WHERE c.oid = 'conversations'::regclass);
BEGIN
    FOR looked IN
        SELECT c.oid, c.relname::text AS name,
               coalesce(string_agg(hold.form, ' || '' '' || ') FILTER (WHERE hold.is_text), '''''') AS said,
               coalesce(string_agg(hold.form, ' || '' '' || ') FILTER (WHERE hold.is_name), '''''') AS named,
               coalesce(min(format('position(convert_to(one.needle, ''UTF8'') in t.%I) > 0', a.attname))
                            FILTER (WHERE a.atttypid = 'bytea'::regtype AND a.attname = 'payload'), 'false') AS bytes,
               coalesce(min(format('t.%I', a.attname)) FILTER (WHERE a.attname IN ('ts', 'at', 'updated_at')),
                        'NULL::timestamptz') AS moment,
               CASE WHEN bool_or(a.attname = 'agent_identity') THEN '($2 IS NULL OR t.agent_identity = ANY ($2))' ELSE 'true' END AS chosen
        FROM pg_catalog.pg_class AS c
        JOIN pg_catalog.pg_attribute AS a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
        CROSS JOIN LATERAL (
            SELECT CASE WHEN a.attname = 'metadata' THEN format('coalesce((t.%I %s)::text, '''')', a.attname, stamps)
                        WHEN a.attname IN ('lexeme', 'lexemes') -- A theme's marker is its name.
                        THEN format('coalesce(regexp_replace(t.%I::text, ''~=([^'''']|'''''''')*'', '''', ''g''), '''')', a.attname)
                        ELSE format('coalesce(t.%I::text, '''')', a.attname) END,
                   a.atttypid = ANY ('{{text,varchar,jsonb,json,tsvector,_text,name}}'::regtype[]) AND a.attname <> ALL (names),
                   a.atttypid = ANY ('{{text,varchar,jsonb,json,tsvector,_text,name}}'::regtype[]) AND a.attname = ANY (names)
        ) AS hold (form, is_text, is_name)
        WHERE c.relkind IN ('r', 'p') AND c.relnamespace = (SELECT n.oid FROM pg_catalog.pg_namespace AS n WHERE n.nspname = place)
        GROUP BY c.oid, c.relname
    LOOP
        SELECT looked.name, -1, 0, 0 INTO table_name, rows, newer, in_names;
        IF has_table_privilege(looked.oid, 'SELECT') THEN
            EXECUTE format(
                'SELECT count(*) FILTER (WHERE holds AND NOT late), count(*) FILTER (WHERE holds AND late), count(*) FILTER (WHERE NOT holds)
                 FROM (SELECT (SELECT bool_or(strpos(lower(%2$s), lower(one.needle)) > 0 OR %3$s) FROM unnest($1) AS one (needle)) AS holds,
                              (SELECT bool_or(strpos(lower(%4$s), lower(one.needle)) > 0) FROM unnest($1) AS one (needle)) AS names_it,
                              coalesce(%5$s > $3, false) AS late
                       FROM %1$s AS t WHERE %6$s) AS searched
                 WHERE holds OR names_it',
                looked.oid::regclass, looked.said, looked.bytes, looked.named, looked.moment, looked.chosen)
                INTO rows, newer, in_names USING needles, themes, until;
        END IF;
        RETURN NEXT;
    END LOOP;
    SELECT 'pg_stats', count(*), 0, 0 INTO table_name, rows, newer, in_names
    FROM (SELECT concat_ws(' ', s.most_common_vals::text, s.histogram_bounds::text) FROM pg_catalog.pg_stats AS s
          WHERE s.schemaname = place AND s.attname <> ALL (names::name[])
          UNION ALL SELECT s.most_common_elems::text FROM pg_catalog.pg_stats_ext_exprs AS s WHERE s.schemaname = place) AS k (words)
    WHERE EXISTS (SELECT FROM unnest(needles) AS one (needle)
                  WHERE strpos(lower(regexp_replace(k.words, '~=[^,}}"]*', '', 'g')), lower(one.needle)) > 0);
    RETURN NEXT; END $$;
