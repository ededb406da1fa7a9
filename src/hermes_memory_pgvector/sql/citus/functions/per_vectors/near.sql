-- The rows nearest to a question, from the shard of its theme or from all, for whoever asks why something was found.
CREATE OR REPLACE FUNCTION hermes_near(
    model {row}, theme text, all_themes boolean, narrow text[], since timestamptz, until timestamptz, question halfvec,
    candidate_limit integer, min_similarity real, wanted integer, trust text
) RETURNS TABLE (seen_in text, id bigint, similarity real)
    LANGUAGE plpgsql STABLE SET search_path FROM CURRENT
    AS $$
DECLARE
    leads_there CONSTANT text := hermes_shard_key($2);
BEGIN
    RETURN QUERY
    SELECT near.seen_in, near.id, near.similarity FROM shard_anchors AS anchor
    CROSS JOIN LATERAL hermes_near_in_shard(anchor.shard_id, {nothing}, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11) AS near
    WHERE $3 OR anchor.agent_identity = leads_there;
END $$;
