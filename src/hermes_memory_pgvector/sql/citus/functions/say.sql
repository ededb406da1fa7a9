-- Sets the limits of a transaction and what it is about, on the coordinator and on every worker that it comes to.
--
-- Workers are told what is set by SET LOCAL, not what set_config sets.
CREATE OR REPLACE FUNCTION hermes_say(names text[], settings text[]) RETURNS void
    LANGUAGE plpgsql
    AS $$
BEGIN
    PERFORM pg_catalog.set_config('citus.propagate_set_commands', 'local', true);
    FOR number IN 1 .. pg_catalog.cardinality(names) LOOP
        IF pg_catalog.starts_with(names[number], 'hermes.') THEN
            EXECUTE pg_catalog.format('SET LOCAL %s = %L', names[number], settings[number]);
            -- What every node has is changed only by a transaction that uses one connection to each.
            IF settings[number] = 'operator' THEN
                PERFORM pg_catalog.set_config('citus.multi_shard_modify_mode', 'sequential', true);
            END IF;
        ELSE
            PERFORM pg_catalog.set_config(names[number], settings[number], true);
        END IF;
    END LOOP;
END $$;
