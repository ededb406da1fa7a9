-- Trigger: exchanges the markers of a row that moves to another theme; a hidden row has none.
CREATE OR REPLACE FUNCTION hermes_move_lexemes() RETURNS trigger
    LANGUAGE plpgsql SET search_path FROM CURRENT
    AS $$
    BEGIN
        IF NEW.hidden_by IS NULL THEN
            NEW.lexemes := ts_delete(NEW.lexemes, ARRAY['~=' || OLD.agent_identity, '~all'])
                || hermes_theme_lexemes(NEW.agent_identity);
        END IF;
        RETURN NEW;
    END $$;
