-- The key that leads to the shard of a theme; an error when the shards are not those that the functions were made for.
CREATE OR REPLACE FUNCTION hermes_shard_key(theme text) RETURNS text
    LANGUAGE plpgsql STABLE SET search_path FROM CURRENT
    AS $$
DECLARE
    found text;
BEGIN
    SELECT known.key INTO found FROM shard_keys AS known
    WHERE known.shard_id = get_shard_id_for_distribution_column('conversations'::regclass, theme);
    IF found IS NULL OR (SELECT count(*) FROM shard_keys) <> (
            SELECT count(*) FROM pg_dist_shard AS s WHERE s.logicalrelid = 'conversations'::regclass) THEN
        RAISE EXCEPTION 'the shards are not those of the last migrate' USING ERRCODE = 'C1T01';
    END IF;
    RETURN found;
END $$;
