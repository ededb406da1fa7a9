-- can_be_marked --
-- whether the schema is of a version that knows where an installation has moved to
SELECT EXISTS (SELECT FROM pg_attribute AS a JOIN pg_class AS c ON c.oid = a.attrelid
               WHERE c.relnamespace = quote_ident(current_schema())::regnamespace
                 AND c.relname = 'hermes_pgvector_installation' AND a.attname = 'moved_to')


-- clients --
-- how many connections agents have to this database
SELECT count(*) FROM pg_stat_activity
WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend' AND usename <> current_user


-- close_table --
-- keeps everybody from changing a table; who reads goes on reading
CREATE OR REPLACE TRIGGER not_in_use BEFORE INSERT OR UPDATE OR DELETE ON {table}
    FOR EACH STATEMENT EXECUTE FUNCTION hermes_refuse_write()


-- columns --
-- the columns of a table that hold what was stored, and their types
SELECT a.attname::text, format_type(a.atttypid, a.atttypmod)
FROM pg_attribute AS a
WHERE a.attrelid = (quote_ident(current_schema()) || '.' || quote_ident(%s))::regclass
  AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated = ''
ORDER BY a.attname


-- copy_in --
-- takes rows of a table
COPY {table} ({columns}) FROM STDIN (FORMAT {format})


-- copy_out --
-- sends rows of a table
COPY (SELECT {columns} FROM {table} WHERE {rows}) TO STDOUT (FORMAT {format})


-- count --
-- how many rows a table has
SELECT count(*) FROM {table}


-- delete --
-- makes room for rows that are copied anew
DELETE FROM {table} WHERE {rows}


-- facts --
-- what kind of server and login this is
SELECT current_setting('server_version'), current_setting('server_version_num')::integer,
       current_database()::text, current_schema()::text, pg_encoding_to_char(d.encoding)::text, current_user::text,
       has_database_privilege(current_database(), 'CREATE') OR current_schema() IS NOT NULL AND has_schema_privilege(current_schema(), 'CREATE'),
       pg_is_in_recovery(), pg_database_size(current_database()),
       (SELECT e.extversion::text FROM pg_extension AS e WHERE e.extname = 'vector')
FROM pg_database AS d WHERE d.datname = current_database()


-- fingerprint --
-- how many rows each block of a table and each theme in it has, and the sum of their checksums
SELECT grouping(line.block) = 0, line.block, line.theme, count(*), sum(line.checksum)
FROM (SELECT {block} AS block, {theme} AS theme,
             ('x' || encode(substr(sha256(convert_to(ROW({columns})::text, 'UTF8')), 1, 8), 'hex'))::bit(64)::bigint AS checksum
      FROM {table}) AS line
GROUP BY GROUPING SETS ((line.block), (line.theme))


-- has_rows --
-- whether a table has rows
SELECT EXISTS (SELECT FROM {table})


-- insert_model --
-- registers an embedding model under a given number; the rest of its row is copied later
INSERT INTO embedding_models (id, name, dim) OVERRIDING SYSTEM VALUE VALUES (%(id)s, %(name)s, %(dim)s)


-- lock --
-- waits for what is being written, and holds back what comes next until the transaction ends; who reads goes on reading
LOCK TABLE {tables} IN SHARE MODE


-- mark --
-- which installation this is, where it has moved to, and which one is being copied to here
SELECT id::text, moved_to, filled_from::text FROM hermes_pgvector_installation


-- minders --
-- whether rows of a table are changed or counted as they come
SELECT EXISTS (SELECT FROM pg_trigger AS t
               WHERE t.tgrelid = c.oid AND NOT t.tgisinternal AND t.tgname <> 'not_in_use')
FROM pg_class AS c
WHERE c.relnamespace = quote_ident(current_schema())::regnamespace AND c.relname = %s


-- models --
-- the embedding models, each with its vector tables
SELECT id, name, dim FROM embedding_models ORDER BY id


-- open_table --
-- lets everybody change a table again who has the right to
DROP TRIGGER IF EXISTS not_in_use ON {table}


-- other_homes --
-- homes that have written here within a week, except these
SELECT DISTINCT home_id FROM journal_writers
WHERE home_id <> '' AND home_id <> ALL (%(homes)s::text[]) AND updated_at > now() - interval '7 days' ORDER BY 1


-- owner --
-- whether this login owns a table, or is a member of the role that does
SELECT pg_has_role(c.relowner, 'USAGE') FROM pg_class AS c
WHERE c.relnamespace = quote_ident(current_schema())::regnamespace AND c.relname = %s


-- read_sequence --
-- how far a sequence is
SELECT last_value, is_called FROM {sequence}


-- sequences --
-- the sequences that number the rows of these tables
SELECT DISTINCT s.relname::text
FROM pg_depend AS d
JOIN pg_class AS s ON s.oid = d.objid AND s.relkind = 'S'
JOIN pg_class AS t ON t.oid = d.refobjid
WHERE d.classid = 'pg_class'::regclass AND d.refclassid = 'pg_class'::regclass AND d.deptype IN ('a', 'i')
  AND t.relnamespace = quote_ident(current_schema())::regnamespace AND t.relname = ANY (%s)
ORDER BY 1


-- set_mark --
-- says which installation this is, where it has moved to, and which one is being copied to here
UPDATE hermes_pgvector_installation SET id = %(id)s, moved_to = %(moved_to)s, filled_from = %(filled_from)s


-- set_sequence --
-- sets a sequence
SELECT setval(format('%%I.%%I', current_schema(), %(name)s::text)::regclass, %(value)s, %(is_called)s)


-- stay_within --
-- makes names and texts mean the same on both sides for as long as this connection lives
SELECT set_config('search_path', concat_ws(', ', quote_ident(%(schema)s), quote_ident(e.place), 'pg_temp'), false),
       set_config('TimeZone', 'UTC', false), set_config('DateStyle', 'ISO, MDY', false),
       set_config('IntervalStyle', 'postgres', false), set_config('bytea_output', 'hex', false),
       set_config('extra_float_digits', '1', false), set_config('statement_timeout', '0', false),
       set_config('lock_timeout', '0', false), set_config('idle_in_transaction_session_timeout', '0', false),
       set_config('synchronous_commit', 'on', false)
FROM (SELECT (SELECT n.nspname FROM pg_extension AS x JOIN pg_namespace AS n ON n.oid = x.extnamespace
              WHERE x.extname = 'vector') AS place) AS e


-- theme_indexes --
-- the themes that have an index of their own; null stands for the index over all themes
SELECT NULL::text FROM embedding_models AS m
WHERE m.is_current AND hermes_has_shared_index(('turn_vectors_' || m.id)::regclass)
UNION ALL
SELECT i.agent_identity FROM theme_indexes AS i JOIN embedding_models AS m ON m.id = i.model_id AND m.is_current


-- themes --
-- how many themes hold memories or turns
SELECT count(*) FROM (SELECT agent_identity FROM memory_entries UNION SELECT agent_identity FROM conversations) AS theme
