-- The tables of the whole installation, as `migrate` makes them once: there is one of each, however many buckets there are.
--
-- No statement names one of them together with a table of base.sql: those lie in the schema of a bucket.

-- MEMORY.md and USER.md of each home as last compared: the digests of the entries in file order, and when the file had been
-- written, in microseconds.
CREATE TABLE memory_files (
    home_id     text        NOT NULL,
    target      text        NOT NULL CHECK (target IN ('memory', 'user')),
    digests     bytea[]     NOT NULL DEFAULT '{}',
    compared_at timestamptz NOT NULL DEFAULT '-infinity',
    written_us  bigint      NOT NULL DEFAULT 0,
    PRIMARY KEY (home_id, target)
);

-- What was asked to be forgotten, by whom and how much there was of it. No text: `named` says which options were given.
CREATE SEQUENCE receipts_id_seq;
CREATE TABLE receipts (
    id           bigint      PRIMARY KEY DEFAULT nextval('receipts_id_seq'),
    forgotten_at timestamptz NOT NULL,
    actor        text        NOT NULL CHECK (actor <> '' AND length(actor) <= 200),
    home_id      text        NOT NULL DEFAULT '',
    named        text[]      NOT NULL DEFAULT '{}',
    counts       jsonb       NOT NULL DEFAULT '{}'::jsonb,
    left_over    text[]      NOT NULL DEFAULT '{}'
);
ALTER SEQUENCE receipts_id_seq OWNED BY receipts.id;

-- Who did what to the memory, when, and to how many rows. It holds no text: whatever is named here is a theme, an id or a
-- number. The runtime role adds rows and reads them; the time and the login are Postgres's own word.
CREATE SEQUENCE audit_log_id_seq;
CREATE TABLE audit_log (
    id      bigint      PRIMARY KEY DEFAULT nextval('audit_log_id_seq'),
    at      timestamptz NOT NULL DEFAULT clock_timestamp(),
    login   text        NOT NULL DEFAULT session_user,
    actor   text        NOT NULL CHECK (actor <> '' AND length(actor) <= 200),
    home_id text        NOT NULL DEFAULT '',
    action  text        NOT NULL CHECK (action ~ '^[a-z][a-z ()-]{0,39}$'),
    theme   text        NOT NULL DEFAULT '',
    subject text        NOT NULL DEFAULT '' CHECK (length(subject) <= 200),
    counts  jsonb       NOT NULL DEFAULT '{}'::jsonb
            CHECK (jsonb_typeof(counts) = 'object' AND NOT jsonb_path_exists(counts, '$.* ? (@.type() != "number")'))
);
ALTER SEQUENCE audit_log_id_seq OWNED BY audit_log.id;

-- The processes that work with this memory: each tells now and then that it lives and how it is doing. Numbers, names of
-- machines and folders, sentences about what does not work; never a theme and never a text.
CREATE TABLE processes (
    id          text        PRIMARY KEY,
    home_id     text        NOT NULL,
    host        text        NOT NULL,
    pid         integer     NOT NULL,
    command     text        NOT NULL,
    version     text        NOT NULL,
    started_at  timestamptz NOT NULL,
    seen_at     timestamptz NOT NULL,
    -- Whoever lives is heard of again by then.
    expected_at timestamptz NOT NULL,
    ended_at    timestamptz,
    status      jsonb       NOT NULL CHECK (jsonb_typeof(status) = 'object')
);
CREATE INDEX processes_seen ON processes (seen_at);

-- Which installation this is. The id is random and made once; it stays with the rows, through dumps and restores, so
-- that a home's journal can tell the database it belongs to from any other. moved_to: where it went, if it has moved.
-- key: what the marks of `forgotten` are made with. buckets: the schemas that the tables of base.sql lie in, in the order
-- that themes are dealt to them; none: they lie in this one.
CREATE TABLE hermes_pgvector_installation (
    id            uuid        NOT NULL DEFAULT gen_random_uuid(),
    made_at       timestamptz NOT NULL DEFAULT now(),
    moved_to      text,
    buckets       text[]      NOT NULL DEFAULT '{}' CHECK (cardinality(buckets) <> 1),
    text_search   text        NOT NULL DEFAULT 'pg_catalog.english',
    key           bytea       NOT NULL DEFAULT sha256(convert_to(gen_random_uuid()::text || gen_random_uuid()::text, 'UTF8')),
    is_the_one    boolean     PRIMARY KEY DEFAULT true CHECK (is_the_one)
);
INSERT INTO hermes_pgvector_installation DEFAULT VALUES;

-- Themes that lie in another bucket than their name says, as they were renamed or merged into another theme.
CREATE TABLE theme_places (
    theme  text    PRIMARY KEY,
    bucket integer NOT NULL CHECK (bucket >= 0)
);

ALTER TABLE memory_files ALTER COLUMN digests SET STATISTICS 0;
