-- On a worker: the id of a new line of theme_growth. Sequences of workers do not follow each other; their clocks nearly do.
CREATE OR REPLACE FUNCTION hermes_next_line() RETURNS bigint
    LANGUAGE sql VOLATILE SET search_path = pg_catalog, pg_temp
    AS $$
    SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint * 1000
           + nextval(format('%I.%I', {schema_name}, 'theme_growth_id_seq')::regclass) % 1000
    $$;
