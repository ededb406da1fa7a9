-- Trigger of a shard: counts rows that a statement has added to memory_entries or conversations.
CREATE OR REPLACE FUNCTION hermes_note_added() RETURNS trigger
    LANGUAGE plpgsql SET search_path FROM CURRENT
    AS $$
    BEGIN
        EXECUTE format(
            'INSERT INTO %s (agent_identity, id, memories, turns, last_write)
             SELECT agent_identity, hermes_next_line(), $1 * count(*), (1 - $1) * count(*), now() FROM added GROUP BY agent_identity',
            hermes_beside(TG_TABLE_NAME, 'theme_growth'))
        USING CASE WHEN starts_with(TG_TABLE_NAME, 'memory_entries') THEN 1 ELSE 0 END;
        RETURN NULL;
    END $$;
