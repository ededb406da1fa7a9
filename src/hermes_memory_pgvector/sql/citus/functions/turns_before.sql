-- The last two turns stored in each of these sessions, from the shards of their themes alone, each asked once.
CREATE OR REPLACE FUNCTION hermes_turns_before(themes text[], session_ids text[])
    RETURNS TABLE (theme text, session_id text, content text, ts timestamptz, id bigint)
    LANGUAGE plpgsql STABLE SET search_path FROM CURRENT
    AS $$
#variable_conflict use_column
DECLARE
    lead_there CONSTANT text[] := ARRAY(
        SELECT hermes_shard_key(min(asked.theme)) FROM unnest(themes) AS asked (theme)
        GROUP BY get_shard_id_for_distribution_column('conversations'::regclass, asked.theme));
BEGIN
    RETURN QUERY
    SELECT found.* FROM shard_anchors AS anchor
    CROSS JOIN LATERAL hermes_turns_before_in_shard(anchor.shard_id, $1, $2) AS found
    WHERE anchor.agent_identity = ANY (lead_there);
END $$;
