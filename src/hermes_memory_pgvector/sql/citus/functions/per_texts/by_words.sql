-- The rows whose words tell most of a question, for whoever asks why something was found; how much each word counts is what
-- the shard of the theme says.
CREATE OR REPLACE FUNCTION hermes_by_words(
    source {row}, theme text, all_themes boolean, narrow text[], since timestamptz, until timestamptz,
    terms text[], queries text[], weights real[], trust text
) RETURNS TABLE (themes text[], ids bigint[], idf double precision[], is_absent boolean[])
    LANGUAGE plpgsql STABLE SET search_path FROM CURRENT
    AS $$
DECLARE
    leads_there CONSTANT text := hermes_shard_key(theme);
BEGIN
    RETURN QUERY
    WITH found AS MATERIALIZED (
        SELECT anchor.agent_identity = leads_there AS is_own, every.themes, every.ids, every.idf, every.is_absent
        FROM shard_anchors AS anchor
        CROSS JOIN LATERAL hermes_by_words_in_shard(anchor.shard_id, {nothing}, $2, $3, $4, $5, $6, $7, $8, $9, $10) AS every
        WHERE $3 OR anchor.agent_identity = leads_there
    )
    SELECT (SELECT array_agg(one.seen_in) FROM found AS f, unnest(f.themes, f.ids) AS one (seen_in, id)),
           (SELECT array_agg(one.id) FROM found AS f, unnest(f.themes, f.ids) AS one (seen_in, id)), own.idf, own.is_absent
    FROM found AS own WHERE own.is_own;
END $$;
