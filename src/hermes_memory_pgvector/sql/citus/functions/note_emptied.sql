-- Trigger of a shard: counts the rows of a table that was emptied by TRUNCATE.
CREATE OR REPLACE FUNCTION hermes_note_emptied() RETURNS trigger
    LANGUAGE plpgsql SET search_path FROM CURRENT
    AS $$
    BEGIN
        EXECUTE format(
            'INSERT INTO %1$s (agent_identity, id, memories, turns)
             SELECT agent_identity, hermes_next_line(), -$1 * sum(memories), -(1 - $1) * sum(turns) FROM %1$s GROUP BY agent_identity',
            hermes_beside(TG_TABLE_NAME, 'theme_growth'))
        USING CASE WHEN starts_with(TG_TABLE_NAME, 'memory_entries') THEN 1 ELSE 0 END;
        RETURN NULL;
    END $$;
