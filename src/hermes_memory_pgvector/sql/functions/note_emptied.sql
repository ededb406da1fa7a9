-- Trigger: counts the rows of a table that was emptied by TRUNCATE.
CREATE OR REPLACE FUNCTION hermes_note_emptied() RETURNS trigger
    LANGUAGE plpgsql SET search_path FROM CURRENT
    AS $$
    BEGIN
        INSERT INTO theme_growth (agent_identity, memories, turns)
        SELECT agent_identity, CASE WHEN TG_TABLE_NAME = 'memory_entries' THEN -sum(memories) ELSE 0 END,
               CASE WHEN TG_TABLE_NAME = 'conversations' THEN -sum(turns) ELSE 0 END
        FROM theme_growth GROUP BY agent_identity;
        RETURN NULL;
    END $$;
