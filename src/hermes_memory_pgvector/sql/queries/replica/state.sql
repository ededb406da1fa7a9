-- How far is this server?
SELECT state.changes, state.mirrored, state.seqs, state.is_standby, state.wal::float8, state.replay_age, state.running_since
FROM hermes_replica_state(%(home_id)s::text, %(writers)s::text[]) AS state;
