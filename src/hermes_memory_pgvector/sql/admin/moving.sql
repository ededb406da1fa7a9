-- clients --
-- how many connections agents have to this database
SELECT count(*) FROM pg_stat_activity
WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend' AND usename <> current_user


-- columns --
-- the columns of a table that hold what was stored
SELECT a.attname::text
FROM pg_attribute AS a
WHERE a.attrelid = (quote_ident(current_schema()) || '.' || quote_ident(%s))::regclass
  AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated = ''
ORDER BY a.attname


-- copy_in --
-- takes rows of a table
COPY {table} ({columns}) FROM STDIN (FORMAT binary)


-- copy_out --
-- sends the rows of a table
COPY (SELECT {columns} FROM {table}) TO STDOUT (FORMAT binary)


-- count --
-- how many rows a table has
SELECT count(*) FROM {table}


-- facts --
-- what kind of server and login this is
SELECT current_setting('server_version_num')::integer, current_schema()::text, current_user::text,
       has_database_privilege(current_database(), 'CREATE') OR current_schema() IS NOT NULL AND has_schema_privilege(current_schema(), 'CREATE'),
       pg_is_in_recovery()


-- has_approximate_index --
-- whether an index over vectors is an approximate one
SELECT EXISTS (SELECT FROM pg_class AS c JOIN pg_am AS a ON a.oid = c.relam
               JOIN pg_namespace AS n ON n.oid = c.relnamespace
               WHERE a.amname = 'hnsw' AND n.nspname = ANY (%s))


-- has_rows --
-- whether a table has rows
SELECT EXISTS (SELECT FROM {table})


-- leave --
-- says where the installation has moved to; null while it is here
UPDATE hermes_pgvector_installation SET moved_to = %s


-- mark --
-- which installation this is, and where it has moved to
SELECT id::text, moved_to FROM hermes_pgvector_installation


-- models --
-- the embedding models, each with its vector tables
SELECT id, dim FROM embedding_models ORDER BY id


-- other_homes --
-- homes that were heard of within a week, except these
SELECT DISTINCT home_id FROM hermes_processes
WHERE home_id <> ALL (%(homes)s::text[]) AND seen_at > now() - interval '7 days' ORDER BY 1


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


-- set_sequence --
-- sets a sequence
SELECT setval(format('%%I.%%I', current_schema(), %(name)s::text)::regclass, %(value)s, %(is_called)s)


-- stay_within --
-- lets names mean the objects of one schema and of pgvector's for as long as this connection lives, without a time limit
SELECT set_config('search_path', concat_ws(', ', quote_ident(%(schema)s), quote_ident(e.place), 'pg_temp'), false),
       set_config('lock_timeout', '0', false),
       set_config('idle_in_transaction_session_timeout', '0', false), set_config('synchronous_commit', 'on', false)
FROM (SELECT (SELECT n.nspname FROM pg_extension AS x JOIN pg_namespace AS n ON n.oid = x.extnamespace
              WHERE x.extname = 'vector') AS place) AS e


-- sums --
-- how many rows each theme has in a table, and the sum of their checksums
SELECT {theme}, count(*), sum(hashtextextended(ROW({columns})::text, 0)::numeric)::text FROM {table} GROUP BY 1


-- tables --
-- the tables of this schema
SELECT relname::text FROM pg_class WHERE relkind = 'r' AND relnamespace = quote_ident(current_schema())::regnamespace
