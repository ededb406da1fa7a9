-- On a worker: the rows of one shard whose words tell most of a question, as far as the transaction may read them.
CREATE OR REPLACE FUNCTION hermes_by_words_in_shard(
    shard bigint, source {row}, theme text, all_themes boolean, narrow text[], since timestamptz, until timestamptz,
    terms text[], queries text[], weights real[], trust text
) RETURNS TABLE (themes text[], ids bigint[], idf double precision[], is_absent boolean[])
    LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    AS $$
DECLARE
    reach record;
BEGIN
    SELECT * INTO reach FROM {schema}.hermes_reach();
    IF reach.is_open OR (theme = ANY (reach.themes) OR reach.is_public AND NOT {schema}.hermes_is_private(theme))
                        AND (reach.is_public OR NOT all_themes) THEN
        RETURN QUERY EXECUTE format(
            'SELECT found.themes, found.ids, found.idf, found.is_absent
             FROM %1$I.hermes_find_by_words({nothing}, $1, $2, $3, $4, $5, $6, $7, $8, 100, %1$I.hermes_excluded({nothing}, $1, $2, $9)) AS found',
            'hermes_shard_' || shard)
        USING theme, all_themes, narrow, since, until, terms, queries, weights, trust;
    END IF;
END $$;
