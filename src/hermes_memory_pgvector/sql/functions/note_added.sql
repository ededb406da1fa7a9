-- Trigger: counts rows that a statement has added to memory_entries or conversations.
CREATE OR REPLACE FUNCTION hermes_note_added() RETURNS trigger
    LANGUAGE plpgsql SET search_path FROM CURRENT
    AS $$
    BEGIN
        INSERT INTO theme_growth (agent_identity, memories, turns, last_write)
        SELECT agent_identity, CASE WHEN TG_TABLE_NAME = 'memory_entries' THEN count(*) ELSE 0 END,
               CASE WHEN TG_TABLE_NAME = 'conversations' THEN count(*) ELSE 0 END, now()
        FROM added GROUP BY agent_identity;
        RETURN NULL;
    END $$;
