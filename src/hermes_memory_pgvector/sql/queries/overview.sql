-- missing_vectors --
-- How many rows have no vector of this model? Counted up to a bound.
SELECT count(*) FROM (
    SELECT 1 FROM memory_entries AS memory
    WHERE memory.hidden_by IS NULL AND NOT EXISTS (SELECT FROM {memory_vectors} AS known
                      WHERE known.agent_identity = memory.agent_identity AND known.id = memory.id)
    UNION ALL
    SELECT 1 FROM conversations AS turn
    WHERE turn.hidden_by IS NULL AND NOT EXISTS (SELECT FROM {turn_vectors} AS known
                      WHERE known.agent_identity = turn.agent_identity AND known.id = turn.id)
    LIMIT %(most)s::integer
) AS missing;


-- read_only --
-- Does the server take no writes, or not from this role in this database?
SELECT pg_is_in_recovery(), current_setting('transaction_read_only')::boolean;


-- redacted --
-- How many secrets were masked in what is stored, by kind.
SELECT kind, sum(found)::bigint AS found
FROM (SELECT each.key AS kind, each.value::integer AS found
      FROM conversations AS turn, jsonb_each_text(turn.metadata -> 'redacted') AS each
      WHERE turn.metadata ? 'redacted' AND jsonb_typeof(turn.metadata -> 'redacted') = 'object'
      UNION ALL
      SELECT each.key, each.value::integer
      FROM memory_entries AS entry, jsonb_each_text(entry.metadata -> 'redacted') AS each
      WHERE entry.metadata ? 'redacted' AND jsonb_typeof(entry.metadata -> 'redacted') = 'object') AS counted
GROUP BY kind ORDER BY found DESC, kind;


-- server --
-- Which server is this, and who are we on it?
SELECT split_part(current_setting('server_version'), ' ', 1),
       current_database()::text,
       current_user::text,
       coalesce((SELECT pg_has_role(current_user, relowner, 'USAGE') FROM pg_class
                 WHERE oid = to_regclass('memory_entries')), false),
       (SELECT extversion FROM pg_extension WHERE extname = 'vector'),
       clock_timestamp(),
       pg_database_size(current_database());


-- themes --
-- Which themes hold the most rows, and how many rows and themes are there in all?
SELECT theme, memories, turns, last_write, sum(memories) OVER ()::bigint, sum(turns) OVER ()::bigint, count(*) OVER ()
FROM hermes_themes ORDER BY memories + turns DESC, theme LIMIT %(limit)s::integer;
