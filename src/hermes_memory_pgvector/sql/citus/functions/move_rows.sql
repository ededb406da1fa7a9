-- Moves rows of a table to another theme, with everything that refers to them; answers the ids of those that were moved.
--
-- A row's theme is its place in the cluster, which no UPDATE changes: rows are added there and deleted here. ordinals: the
-- new ones of turns, null for other tables.
CREATE OR REPLACE FUNCTION hermes_move_rows(moved regclass, theme text, other text, ids bigint[], ordinals integer[] DEFAULT NULL)
    RETURNS SETOF bigint
    LANGUAGE plpgsql SET search_path FROM CURRENT
    AS $$
DECLARE
    part    record;
    columns text;
    given   text;
BEGIN
    FOR part IN
        SELECT moved AS name, 'id' AS key, 0 AS step
        UNION ALL
        SELECT k.conrelid::regclass, CASE WHEN k.conrelid = 'memory_sources'::regclass THEN 'entry_id' ELSE 'id' END, 1
        FROM pg_catalog.pg_constraint AS k WHERE k.contype = 'f' AND k.confrelid = moved
        ORDER BY 3
    LOOP
        SELECT string_agg(quote_ident(a.attname), ', ' ORDER BY a.attnum),
               string_agg(CASE a.attname
                              WHEN 'agent_identity' THEN '$2'
                              WHEN 'lexemes' THEN 'CASE WHEN r.muted_at IS NULL THEN ts_delete(r.lexemes, ARRAY[''~='' || $1, ''~all'']) || hermes_theme_lexemes($2) ELSE r.lexemes END'
                              WHEN 'ordinal' THEN 'CASE WHEN $4 IS NULL THEN r.ordinal ELSE ($4)[array_position($3, r.id)] END'
                              ELSE 'r.' || quote_ident(a.attname) END, ', ' ORDER BY a.attnum)
        INTO columns, given
        FROM pg_catalog.pg_attribute AS a
        WHERE a.attrelid = part.name AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated = '';
        EXECUTE format('INSERT INTO %1$s (%2$s) SELECT %3$s FROM %1$s AS r WHERE r.agent_identity = $1 AND r.%4$I = ANY ($3)
                        ON CONFLICT DO NOTHING', part.name, columns, given, part.key)
        USING theme, other, ids, ordinals;
    END LOOP;
    RETURN QUERY EXECUTE format('DELETE FROM %s WHERE agent_identity = $1 AND id = ANY ($2) RETURNING id', moved) USING theme, ids;
END $$;
