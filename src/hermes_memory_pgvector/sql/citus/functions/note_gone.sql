-- Trigger of a shard: counts rows that a statement has deleted from memory_entries or conversations.
CREATE OR REPLACE FUNCTION hermes_note_gone() RETURNS trigger
    LANGUAGE plpgsql SET search_path FROM CURRENT
    AS $$
    BEGIN
        EXECUTE format(
            'INSERT INTO %s (agent_identity, id, memories, turns)
             SELECT agent_identity, hermes_next_line(), -$1 * count(*), -(1 - $1) * count(*) FROM gone GROUP BY agent_identity',
            hermes_beside(TG_TABLE_NAME, 'theme_growth'))
        USING CASE WHEN starts_with(TG_TABLE_NAME, 'memory_entries') THEN 1 ELSE 0 END;
        RETURN NULL;
    END $$;
