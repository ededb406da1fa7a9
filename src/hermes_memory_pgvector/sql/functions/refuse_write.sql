-- Trigger: refuses every change to a database that is not in use: its installation has moved, or is just being copied
-- to it. Only the transaction that copies says that it does.
CREATE OR REPLACE FUNCTION hermes_refuse_write() RETURNS trigger
    LANGUAGE plpgsql SET search_path FROM CURRENT
    AS $$
    BEGIN
        IF current_setting('hermes.moves', true) IS DISTINCT FROM 'yes' THEN
            RAISE EXCEPTION 'this database is not in use' USING ERRCODE = 'M0V01';
        END IF;
        RETURN NULL;
    END $$;
