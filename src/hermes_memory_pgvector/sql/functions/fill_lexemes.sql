-- Trigger: gives a row that arrives or is edited without lexemes the plain ones; a hidden row is found by no word.
CREATE OR REPLACE FUNCTION hermes_fill_lexemes() RETURNS trigger
    LANGUAGE plpgsql SET search_path FROM CURRENT
    AS $$
    BEGIN
        NEW.lexemes := CASE WHEN NEW.hidden_by IS NULL THEN hermes_plain_lexemes(NEW.agent_identity, NEW.content)
                            ELSE ''::tsvector END;
        RETURN NEW;
    END $$;
