-- On a worker: the rows of one shard nearest to a question, as far as the transaction may read them; see hermes_found_in_shard.
CREATE OR REPLACE FUNCTION hermes_near_in_shard(
    shard bigint, model {row}, theme text, all_themes boolean, narrow text[], since timestamptz, until timestamptz, question halfvec,
    candidate_limit integer, min_similarity real, wanted integer, trust text
) RETURNS TABLE (seen_in text, id bigint, similarity real)
    LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    AS $$
DECLARE
    reach record;
BEGIN
    SELECT * INTO reach FROM {schema}.hermes_reach();
    IF reach.is_open OR (theme = ANY (reach.themes) OR reach.is_public AND NOT {schema}.hermes_is_private(theme))
                        AND (reach.is_public OR NOT all_themes) THEN
        RETURN QUERY EXECUTE format(
            CASE WHEN all_themes
                 THEN 'SELECT near.* FROM %1$I.hermes_nearest_everywhere({nothing}, $1, $3, $4, $5, $6, $7, %1$I.hermes_excluded({no_text}, $1, $2, $10)) AS found,
                       LATERAL unnest(found.themes, found.ids, found.similarities) AS near'
                 ELSE 'SELECT near.* FROM %1$I.hermes_nearest_in_theme({nothing}, $1, $3, $4, $5, $6, $7, $8, $9, %1$I.hermes_excluded({no_text}, $1, $2, $10)) AS found,
                       LATERAL unnest(found.themes, found.ids, found.similarities) AS near' END, 'hermes_shard_' || shard)
        USING theme, all_themes, narrow, since, until, question, candidate_limit, min_similarity, wanted, trust;
    END IF;
END $$;
