-- keeps everybody from changing a table; who reads goes on reading
CREATE OR REPLACE TRIGGER not_in_use BEFORE INSERT OR UPDATE OR DELETE ON {table}
    FOR EACH STATEMENT EXECUTE FUNCTION hermes_refuse_write()
