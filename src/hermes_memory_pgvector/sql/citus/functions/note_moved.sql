-- Trigger of a shard: notes when a theme was written to. No statement changes a row's theme here: it is the row's place.
CREATE OR REPLACE FUNCTION hermes_note_moved() RETURNS trigger
    LANGUAGE plpgsql SET search_path FROM CURRENT
    AS $$
    BEGIN
        EXECUTE format(
            'INSERT INTO %s (agent_identity, id, memories, turns, last_write)
             SELECT agent_identity, hermes_next_line(), 0, 0, now() FROM added GROUP BY agent_identity',
            hermes_beside(TG_TABLE_NAME, 'theme_growth'));
        RETURN NULL;
    END $$;
