-- Which timeline does this server write? Every promotion begins a new one; 0 for a standby.
SELECT CASE WHEN pg_is_in_recovery() THEN 0 ELSE ('x' || left(pg_walfile_name(pg_current_wal_lsn()), 8))::bit(32)::int END;
