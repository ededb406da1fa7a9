-- Trigger: counts a transaction in which an operator has changed something, once however many rows it notes.
--
-- Runs with the owner's rights: nobody else may change the number.
CREATE OR REPLACE FUNCTION hermes_note_change() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    AS $$
BEGIN
    IF current_setting('hermes.change_noted', true) IS DISTINCT FROM pg_current_xact_id()::text THEN
        UPDATE {schema}.operator_changes SET number = number + 1;
        PERFORM set_config('hermes.change_noted', pg_current_xact_id()::text, true);
    END IF;
    RETURN NULL;
END $$;
