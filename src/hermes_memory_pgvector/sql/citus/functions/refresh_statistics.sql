-- Takes over what ANALYZE knows of lexemes, in every shard of its own rows; cheap, and called by upkeep after a table has grown.
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
        DELETE FROM {schema}.shard_lexemes;
        INSERT INTO {schema}.shard_lexemes (agent_identity, source, lexeme, fraction)
        SELECT anchor.agent_identity, known.source, known.lexeme, known.fraction
        FROM {schema}.shard_anchors AS anchor
        CROSS JOIN LATERAL {schema}.hermes_shard_statistics(anchor.shard_id) AS known;
    END $$;
