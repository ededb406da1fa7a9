-- Takes over what ANALYZE knows of words; cheap, and called by upkeep after a table has grown.
--
-- Runs with the owner's rights, so whoever calls it must not be able to choose what it means: the search_path has Postgres's
-- own catalog alone, and everything of ours is named with its schema.
CREATE OR REPLACE FUNCTION hermes_refresh_statistics() RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    AS $$
    BEGIN
        -- Every process of a fleet may call this: one at a time is enough.
        IF NOT pg_try_advisory_xact_lock(hashtextextended('hermes_refresh_statistics', 0)) THEN
            RETURN;
        END IF;
        DELETE FROM {schema}.lexeme_statistics;
        INSERT INTO {schema}.lexeme_statistics
        SELECT s.tablename, known.lexeme, max(known.fraction)
        FROM pg_catalog.pg_stats_ext_exprs AS s,
             unnest(s.most_common_elems::text::text[], s.most_common_elem_freqs) AS known (lexeme, fraction)
        WHERE s.schemaname = {schema_name} AND s.statistics_name IN ('conversations_words', 'memory_entries_words')
          AND known.lexeme IS NOT NULL
        GROUP BY 1, 2;
    END $$;
