-- Functions are made anew by every migration, from sql/functions: those of other names and arguments go.
--
-- turn_vectors_N.twin becomes content_hash. Vector tables of before the index of codes, whose key carries the codes, get
-- that index and a plain key.
DO $$
DECLARE
    former  regprocedure;
    vectors record;
BEGIN
    FOR former IN
        SELECT p.oid FROM pg_catalog.pg_proc AS p
        WHERE p.pronamespace = quote_ident(current_schema())::regnamespace
          AND p.proname IN ('hermes_twin', 'hermes_theme_size', 'hermes_match_turns', 'hermes_match_memories',
                            'hermes_nearest_turns', 'hermes_nearest_memories', 'hermes_search_turns',
                            'hermes_search_memories')
    LOOP
        EXECUTE 'DROP FUNCTION ' || former;
    END LOOP;

    FOR vectors IN
        SELECT c.oid::regclass AS name, c.relname || '_codes' AS codes,
               CASE WHEN starts_with(c.relname, 'turn') THEN 'id, ts, code' ELSE 'id, ts, target, code' END AS columns,
               EXISTS (SELECT FROM pg_catalog.pg_attribute AS a WHERE a.attrelid = c.oid AND a.attname = 'twin') AS has_twin,
               EXISTS (SELECT FROM pg_catalog.pg_index AS i JOIN pg_catalog.pg_class AS own ON own.oid = i.indexrelid
                       WHERE i.indrelid = c.oid AND own.relname = c.relname || '_codes') AS has_codes,
               (SELECT k.conname FROM pg_catalog.pg_constraint AS k JOIN pg_catalog.pg_index AS i ON i.indexrelid = k.conindid
                WHERE k.conrelid = c.oid AND k.contype = 'p' AND i.indnatts > i.indnkeyatts) AS wide_key
        FROM embedding_models AS m
        JOIN pg_catalog.pg_class AS c ON c.relname IN ('turn_vectors_' || m.id, 'memory_vectors_' || m.id)
        WHERE c.relnamespace = quote_ident(current_schema())::regnamespace
    LOOP
        IF vectors.has_twin THEN
            EXECUTE format('ALTER TABLE %s RENAME COLUMN twin TO content_hash', vectors.name);
        END IF;
        IF NOT vectors.has_codes THEN
            EXECUTE format('CREATE INDEX %I ON %s (agent_identity) INCLUDE (%s) WITH (fillfactor = 100)',
                           vectors.codes, vectors.name, vectors.columns);
        END IF;
        IF vectors.wide_key IS NOT NULL THEN
            EXECUTE format('ALTER TABLE %1$s DROP CONSTRAINT %2$I, ADD CONSTRAINT %2$I PRIMARY KEY (agent_identity, id, chunk)',
                           vectors.name, vectors.wide_key);
        END IF;
    END LOOP;
END
$$;
