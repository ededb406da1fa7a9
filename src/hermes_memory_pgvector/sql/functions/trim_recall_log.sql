-- Keeps the newest answers of these themes in the log, so many of each and no fewer than a hundred, as far as this session
-- may read them: whoever only reads leaves its traces, too, and may not take those of others away.
--
-- Runs with the owner's rights, so whoever calls it must not be able to choose what it means: the search_path has Postgres's
-- own catalog alone, and everything of ours is named with its schema.
CREATE OR REPLACE FUNCTION hermes_trim_recall_log(themes text[], keep integer) RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    AS $$
DECLARE
    reach record;
BEGIN
    SELECT * INTO reach FROM {schema}.hermes_reach();
    DELETE FROM {schema}.recall_log AS log
    USING unnest(hermes_trim_recall_log.themes) AS given (theme)
    WHERE log.agent_identity = given.theme
      AND (reach.is_open OR given.theme = ANY (reach.themes) OR given.theme LIKE ANY (reach.patterns))
      AND log.id <= (
        SELECT older.id FROM {schema}.recall_log AS older
        WHERE older.agent_identity = given.theme
        ORDER BY older.id DESC OFFSET greatest(keep, 100) LIMIT 1);
END $$;
