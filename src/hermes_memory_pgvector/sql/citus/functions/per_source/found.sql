-- The best rows for a question, from the shard of its theme; of scope 'all', the best of what every shard finds, or those
-- that hermes.shards names where a node is away.
--
-- Ranks are of each shard's own words: how rare a word is among the rows of that shard.
CREATE OR REPLACE FUNCTION hermes_found(source {row}, {declared}) RETURNS TABLE ({answered})
    LANGUAGE plpgsql STABLE ROWS 10 SET search_path FROM CURRENT
    AS $$
#variable_conflict use_column
DECLARE
    leads_there CONSTANT text := hermes_shard_key(theme);
    asked CONSTANT text[] := coalesce(string_to_array(nullif(current_setting('hermes.shards', true), ''), ','),
                                      (SELECT array_agg(known.key) FROM shard_keys AS known));
BEGIN
    IF NOT all_themes THEN
        RETURN QUERY
        SELECT found.* FROM shard_anchors AS anchor
        CROSS JOIN LATERAL hermes_found_in_shard(anchor.shard_id, {nothing}, {given}) AS found
        WHERE anchor.agent_identity = leads_there ORDER BY found.number;
        RETURN;
    END IF;
    RETURN QUERY
    WITH found AS MATERIALIZED (
        SELECT every.* FROM shard_anchors AS anchor
        CROSS JOIN LATERAL hermes_found_in_shard(anchor.shard_id, {nothing}, {given}) AS every
        WHERE anchor.agent_identity = ANY (asked)
    )
    SELECT best.agent_identity, best.id, best.ts, best.content, best.similarity, best.rank, best.count, best.place, best.role,
           best.origin, best.trusted, best.tools,
           row_number() OVER (ORDER BY best.is_further, best.rank DESC, best.ts DESC, best.id DESC)
    FROM (SELECT f.*, by_session AND row_number() OVER (PARTITION BY f.agent_identity, f.place ORDER BY f.number) > 1 AS is_further
          FROM found AS f) AS best
    ORDER BY 13 LIMIT wanted;
END $$;
