-- How far a server is, so that a replica can be compared with its primary: the changes of operators it has seen, when the
-- files of a home were last compared, how far journals have arrived (NULL for one it has never heard of), and its place in
-- the write-ahead log, with the age of the last transaction a standby has replayed; NULL where a service hides them. Since
-- when it runs tells one server from another.
--
-- Runs with the owner's rights, whatever the transaction is about; it tells numbers and times.
CREATE OR REPLACE FUNCTION hermes_replica_state(
    home text, writers text[],
    OUT changes bigint, OUT mirrored timestamptz, OUT seqs bigint[], OUT is_standby boolean, OUT wal numeric, OUT replay_age float8,
    OUT running_since timestamptz
)
    LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    AS $$
BEGIN
    changes := (SELECT c.number FROM {schema}.operator_changes AS c);
    mirrored := (SELECT max(f.updated_at) FROM {schema}.memory_files AS f WHERE f.home_id = home);
    seqs := ARRAY(
        SELECT greatest(
            (SELECT known.seq FROM {schema}.journal_writers AS known WHERE known.writer = given.writer),
            (SELECT max(one.seq) FROM {schema}.journals_ended AS ended
             CROSS JOIN LATERAL unnest(ended.writers, ended.seqs) AS one (writer, seq)
             WHERE ended.bucket = left(given.writer, 5) AND given.writer = ANY (ended.writers) AND one.writer = given.writer))
        FROM unnest(writers) WITH ORDINALITY AS given (writer, place) ORDER BY given.place);
    is_standby := pg_is_in_recovery();
    running_since := pg_postmaster_start_time();
    BEGIN
        wal := CASE WHEN is_standby THEN pg_last_wal_replay_lsn() ELSE pg_current_wal_lsn() END - '0/0'::pg_lsn;
        replay_age := extract(epoch FROM clock_timestamp() - pg_last_xact_replay_timestamp());
    EXCEPTION WHEN OTHERS THEN
        -- Some managed services have no such log.
        wal := NULL;
    END;
END $$;
