-- On a worker: the last two turns that one shard has of each of these sessions, as far as the transaction may read them.
--
-- Reads as the owner, as hermes_found_in_shard does, and is as careful.
CREATE OR REPLACE FUNCTION hermes_turns_before_in_shard(shard bigint, themes text[], session_ids text[])
    RETURNS TABLE (theme text, session_id text, content text, ts timestamptz, id bigint)
    LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    AS $$
BEGIN
    IF (SELECT reach.is_open FROM {schema}.hermes_reach() AS reach) THEN
        RETURN QUERY EXECUTE format(
            'SELECT asked.theme, asked.session_id, earlier.content, earlier.ts, earlier.id
             FROM unnest($1, $2) AS asked (theme, session_id)
             CROSS JOIN LATERAL (
                 SELECT turn.content, turn.ts, turn.id FROM %I.%I AS turn
                 WHERE turn.agent_identity = asked.theme AND turn.session_id = asked.session_id
                 ORDER BY turn.ts DESC LIMIT 2) AS earlier', {schema_name}, 'conversations_' || shard)
        USING themes, session_ids;
    END IF;
END $$;
