-- buckets --
-- the schemas of the buckets, in their order; none where the tables lie beside this one
SELECT buckets FROM hermes_pgvector_installation


-- column_exists --
-- whether a table has a column
SELECT EXISTS (SELECT FROM pg_attribute WHERE attrelid = %s::regclass AND attname = %s AND NOT attisdropped)


-- language --
-- the text search configuration that words are taken apart by
SELECT text_search FROM hermes_pgvector_installation


-- languages --
-- the text search configurations of the server
SELECT quote_ident(n.nspname) || '.' || quote_ident(c.cfgname) FROM pg_ts_config AS c JOIN pg_namespace AS n ON n.oid = c.cfgnamespace


-- ledger --
-- which migrations have been applied, and with what text
CREATE TABLE IF NOT EXISTS hermes_pgvector_migrations (
    version    integer     PRIMARY KEY,
    name       text        NOT NULL,
    sha256     text        NOT NULL,
    applied_at timestamptz NOT NULL DEFAULT now()
);


-- make_language --
-- the function that says which it is
CREATE OR REPLACE FUNCTION hermes_language() RETURNS regconfig LANGUAGE sql IMMUTABLE PARALLEL SAFE RETURN {language}::regconfig


-- make_words_of_memories --
-- takes the words of every memory apart anew
UPDATE memory_entries SET content = content


-- make_words_of_turns --
-- takes the words of every turn apart anew
UPDATE conversations SET content = content


-- pgvector_version --
-- the version of pgvector in this database, or the one that this server could install
SELECT coalesce(installed_version, default_version) FROM pg_available_extensions WHERE name = 'vector'


-- record_migration --
-- records what was made, and from what text
INSERT INTO hermes_pgvector_migrations (version, name, sha256) VALUES (%s, %s, %s)
ON CONFLICT (version) DO UPDATE SET name = excluded.name, sha256 = excluded.sha256, applied_at = excluded.applied_at


-- set_language --
-- notes the text search configuration
UPDATE hermes_pgvector_installation SET text_search = %s


-- stay_within --
-- lets names mean the objects of these schemas and of pgvector's until the transaction ends; temporary tables come last
SELECT set_config('search_path', concat_ws(', ', (SELECT string_agg(quote_ident(given.name), ', ' ORDER BY given.place)
                                                  FROM unnest(%s::text[]) WITH ORDINALITY AS given (name, place)),
                                           quote_ident(n.nspname), 'pg_temp'), true)
FROM pg_extension AS e
JOIN pg_namespace AS n ON n.oid = e.extnamespace
WHERE e.extname = 'vector'


-- table_exists --
-- whether this schema, and not one further along the search_path, has a table of that name
SELECT EXISTS (
    SELECT FROM pg_class WHERE relname = %s AND relnamespace = quote_ident(current_schema())::regnamespace)


-- runtime_roles --
-- the roles that run agents: whoever may tell of a process, except the owner
SELECT DISTINCT grantee
FROM information_schema.role_table_grants
WHERE table_schema = current_schema() AND table_name = 'processes' AND privilege_type = 'INSERT'
  AND grantee NOT IN ('PUBLIC', current_user)
