-- Trigger: gives a row that arrives or is edited without lexemes the plain ones.
CREATE OR REPLACE FUNCTION hermes_fill_lexemes() RETURNS trigger
    LANGUAGE plpgsql SET search_path FROM CURRENT
    AS $$ BEGIN NEW.lexemes := hermes_plain_lexemes(NEW.agent_identity, NEW.content); RETURN NEW; END $$;
