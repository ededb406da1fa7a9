-- On a worker: the best rows of one shard for a question, as far as the transaction may read them.
--
-- Row-level security would ask for every row what is asked here once; so this reads as the owner. Whoever calls it must not
-- be able to choose what it means: the search_path has Postgres's own catalog alone, and everything of ours is named with
-- its schema.
CREATE OR REPLACE FUNCTION hermes_found_in_shard(shard bigint, source {row}, {declared}) RETURNS TABLE ({answered})
    LANGUAGE plpgsql STABLE ROWS 10 SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    AS $$
#variable_conflict use_column
DECLARE
    reach record;
BEGIN
    SELECT * INTO reach FROM {schema}.hermes_reach();
    IF reach.is_open OR (theme = ANY (reach.themes) OR reach.is_public AND NOT {schema}.hermes_is_private(theme))
                        AND (reach.is_public OR NOT all_themes) THEN
        RETURN QUERY EXECUTE format('SELECT * FROM %I.hermes_found({nothing}, {places})', 'hermes_shard_' || shard) USING {given};
    END IF;
END $$;
