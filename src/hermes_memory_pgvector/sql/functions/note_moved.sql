-- Trigger: counts rows that a statement has moved from one theme to another, and notes when a theme was written to.
CREATE OR REPLACE FUNCTION hermes_note_moved() RETURNS trigger
    LANGUAGE plpgsql SET search_path FROM CURRENT
    AS $$
    BEGIN
        INSERT INTO theme_growth (agent_identity, memories, turns, last_write)
        SELECT agent_identity, CASE WHEN TG_TABLE_NAME = 'memory_entries' THEN sum(moved) ELSE 0 END,
               CASE WHEN TG_TABLE_NAME = 'conversations' THEN sum(moved) ELSE 0 END,
               CASE WHEN sum(moved) >= 0 THEN now() END
        FROM (SELECT agent_identity, 1 AS moved FROM added UNION ALL SELECT agent_identity, -1 FROM gone) AS rows
        GROUP BY agent_identity;
        RETURN NULL;
    END $$;
