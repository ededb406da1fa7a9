-- Trigger: exchanges the markers of a row that moves to another theme.
CREATE OR REPLACE FUNCTION hermes_move_lexemes() RETURNS trigger
    LANGUAGE plpgsql SET search_path FROM CURRENT
    AS $$
    BEGIN
        NEW.lexemes := ts_delete(NEW.lexemes, ARRAY['~=' || OLD.agent_identity, '~all'])
            || hermes_theme_lexemes(NEW.agent_identity);
        RETURN NEW;
    END $$;
