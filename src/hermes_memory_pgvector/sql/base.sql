-- The tables of a bucket, as `migrate` makes them once in its schema. sql/functions.sql has run before. An installation has
-- one bucket, in the schema that has its other tables (installation.sql), or several, in a schema each.
--
-- Every primary and unique key of a table that has themes starts with agent_identity, so that rows of a theme stay together
-- and tables can be spread by theme. No table has a trigger: what a row needs it gets from defaults and generated columns,
-- and upkeep finds rows that have no vector. Names are unqualified: the transaction's search_path says which schema.

-- What is remembered: the entries of MEMORY.md and USER.md, once per theme and target however long they are.
CREATE SEQUENCE memory_entries_id_seq;
CREATE TABLE memory_entries (
    agent_identity text        NOT NULL DEFAULT 'default',
    id             bigint      NOT NULL DEFAULT nextval('memory_entries_id_seq'),
    target         text        NOT NULL CHECK (target IN ('memory', 'user')),
    content        text        NOT NULL,
    created_at     timestamptz NOT NULL DEFAULT now(),
    updated_at     timestamptz NOT NULL DEFAULT now(),
    metadata       jsonb       NOT NULL DEFAULT '{}'::jsonb,
    -- Which homes hold the entry in their file, and how each came to it: {"<home>": {"o": "tool" | "file", "s": micros}}.
    homes          jsonb       NOT NULL DEFAULT '{}'::jsonb,
    -- The home that wrote it first, where that is known.
    home_id        text,
    origin         text        CHECK (origin IN ('memory_tool', 'background_review', 'file', 'operator', 'import', 'mcp')),
    -- Whether the exchange that wrote it had read a stranger's text.
    untrusted      boolean     NOT NULL DEFAULT false,
    -- The row of `hidden` that keeps it from recall: a hidden row has neither vector nor lexemes.
    hidden_by      bigint,
    lexemes        tsvector    GENERATED ALWAYS AS (CASE WHEN hidden_by IS NULL THEN hermes_lexemes(agent_identity, content, '')
                                                  ELSE ''::tsvector END) STORED,
    PRIMARY KEY (agent_identity, id)
) WITH (toast_tuple_target = 8160);
ALTER SEQUENCE memory_entries_id_seq OWNED BY memory_entries.id;
CREATE UNIQUE INDEX memory_entries_content_key ON memory_entries (agent_identity, target, hermes_digest(content));
CREATE INDEX memory_entries_timeline ON memory_entries (agent_identity, target, updated_at DESC);
CREATE INDEX memory_entries_lexemes ON memory_entries USING gin (lexemes) WITH (gin_pending_list_limit = 4096);
CREATE INDEX memory_entries_homes ON memory_entries USING gin (homes);
CREATE INDEX memory_entries_hidden ON memory_entries (agent_identity, hidden_by) WHERE hidden_by IS NOT NULL;
CREATE INDEX memory_entries_untrusted ON memory_entries (agent_identity, id) WHERE untrusted;
-- Nobody noted where these come from: whoever typed them asks for no vector.
CREATE INDEX memory_entries_typed ON memory_entries (agent_identity, id) WHERE origin IS NULL;
CREATE INDEX memory_entries_redacted ON memory_entries (agent_identity) WHERE metadata ? 'redacted';

-- What was said.
CREATE SEQUENCE conversations_id_seq;
CREATE TABLE conversations (
    agent_identity    text        NOT NULL DEFAULT 'default',
    id                bigint      NOT NULL DEFAULT nextval('conversations_id_seq'),
    session_id        text        NOT NULL,
    role              text        NOT NULL CHECK (role IN ('user', 'assistant', 'system', 'tool')),
    content           text        NOT NULL,
    -- Beginning and end of the two turns before, so that an answer is found by the words of its question.
    before            text        NOT NULL DEFAULT '',
    ts                timestamptz NOT NULL DEFAULT now(),
    metadata          jsonb       NOT NULL DEFAULT '{}'::jsonb,
    parent_session_id text,
    digest            bytea,
    ordinal           integer,
    home_id           text,
    origin            text        CHECK (origin IN ('user', 'assistant', 'delegation', 'import')),
    untrusted         boolean     NOT NULL DEFAULT false,
    hidden_by         bigint,
    lexemes           tsvector    GENERATED ALWAYS AS (CASE WHEN hidden_by IS NULL THEN hermes_lexemes(agent_identity, content, before)
                                                     ELSE ''::tsvector END) STORED,
    PRIMARY KEY (agent_identity, id)
) WITH (toast_tuple_target = 8160);
ALTER SEQUENCE conversations_id_seq OWNED BY conversations.id;
-- A turn is the n-th saying of these words in this session: whoever reports it, it is stored once.
CREATE UNIQUE INDEX conversations_turn_key ON conversations (agent_identity, session_id, digest, ordinal);
CREATE INDEX conversations_timeline ON conversations (agent_identity, ts DESC);
CREATE INDEX conversations_session_timeline ON conversations (agent_identity, session_id, ts DESC);
-- Which sessions go on from which: found from either end.
CREATE INDEX conversations_lineage ON conversations (agent_identity, parent_session_id, session_id)
    WHERE parent_session_id IS NOT NULL;
-- The turns that tell of a subagent's work name the session that did it.
CREATE INDEX conversations_delegated ON conversations (agent_identity, session_id) WHERE metadata ? 'delegated_to';
CREATE INDEX conversations_lexemes ON conversations USING gin (lexemes) WITH (gin_pending_list_limit = 4096);
CREATE INDEX conversations_hidden ON conversations (agent_identity, hidden_by) WHERE hidden_by IS NOT NULL;
CREATE INDEX conversations_untrusted ON conversations (agent_identity, id) WHERE untrusted;
CREATE INDEX conversations_typed ON conversations (agent_identity, id) WHERE digest IS NULL;
CREATE INDEX conversations_redacted ON conversations (agent_identity) WHERE metadata ? 'redacted';

-- Every memory operation in the order of its making. The entries are the fold of this list, also when an operation
-- arrives late because its process died before it could deliver. `id` is the number people name it by: `undo e17`.
CREATE SEQUENCE memory_operations_id_seq;
CREATE TABLE memory_operations (
    agent_identity text        NOT NULL,
    target         text        NOT NULL CHECK (target IN ('memory', 'user')),
    order_us       bigint      NOT NULL,
    writer         text        NOT NULL,
    seq            bigint      NOT NULL,
    part           integer     NOT NULL,
    id             bigint      NOT NULL DEFAULT nextval('memory_operations_id_seq'),
    action         text        NOT NULL CHECK (action IN ('add', 'replace', 'remove')),
    content        text        NOT NULL DEFAULT '',
    old_text       text        NOT NULL DEFAULT '',
    previous       text,
    home_id        text        NOT NULL DEFAULT '',
    origin         text        NOT NULL DEFAULT 'tool',
    written_by     text,
    untrusted      boolean     NOT NULL DEFAULT false,
    at             timestamptz NOT NULL,
    metadata       jsonb       NOT NULL DEFAULT '{}'::jsonb,
    PRIMARY KEY (agent_identity, target, order_us, writer, seq, part)
);
ALTER SEQUENCE memory_operations_id_seq OWNED BY memory_operations.id;
CREATE UNIQUE INDEX memory_operations_event ON memory_operations (agent_identity, id);
CREATE INDEX memory_operations_arrival ON memory_operations (id);

-- The embedding models whose vectors there are. unrelated_mean and unrelated_sd: the cosine of unrelated texts in this
-- model; without them rows are judged by their words alone. The prefixes are those its texts were embedded with.
CREATE SEQUENCE embedding_models_id_seq;
CREATE TABLE embedding_models (
    id              integer     PRIMARY KEY DEFAULT nextval('embedding_models_id_seq'),
    name            text        NOT NULL,
    dim             integer     NOT NULL CHECK (dim BETWEEN 1 AND 4000),
    is_current      boolean     NOT NULL DEFAULT false,
    unrelated_mean  real,
    unrelated_sd    real        CHECK (unrelated_sd > 0),
    query_prefix    text,
    document_prefix text,
    created_at      timestamptz NOT NULL DEFAULT now(),
    UNIQUE (name, dim)
);
ALTER SEQUENCE embedding_models_id_seq OWNED BY embedding_models.id;
CREATE UNIQUE INDEX embedding_models_current ON embedding_models (is_current) WHERE is_current;

-- Rows that still want a vector of the current model. Whoever embeds next takes a lease on some of them: due_at is when it
-- ends. `reason` says why a row has been given up, if it has.
CREATE TABLE pending_vectors (
    agent_identity text        NOT NULL,
    kind           text        NOT NULL CHECK (kind IN ('memory', 'turn')),
    id             bigint      NOT NULL,
    due_at         timestamptz NOT NULL DEFAULT now(),
    attempts       integer     NOT NULL DEFAULT 0,
    reason         text        NOT NULL DEFAULT '',
    PRIMARY KEY (agent_identity, kind, id)
);
CREATE INDEX pending_vectors_due ON pending_vectors (due_at);

-- Why rows are hidden: by whom, when, and for how long. The rows name their rule in hidden_by. A rule with is_open also
-- hides what arrives later and is within its bounds; null bounds nothing. Shown again: undone_at says when.
CREATE SEQUENCE hidden_id_seq;
CREATE TABLE hidden (
    id         bigint      PRIMARY KEY DEFAULT nextval('hidden_id_seq'),
    rule       text        NOT NULL CHECK (rule IN ('undone', 'muted', 'retracted')),
    actor      text        NOT NULL CHECK (actor <> '' AND length(actor) <= 200),
    reason     text        NOT NULL DEFAULT '' CHECK (length(reason) <= 500),
    home_id    text        NOT NULL DEFAULT '',
    theme      text,
    session_id text,
    origin     text,
    since      timestamptz,
    until      timestamptz,
    is_open    boolean     NOT NULL DEFAULT false,
    at         timestamptz NOT NULL DEFAULT clock_timestamp(),
    undone_at  timestamptz,
    CHECK (NOT is_open OR session_id IS NOT NULL OR origin IS NOT NULL OR since IS NOT NULL)
);
ALTER SEQUENCE hidden_id_seq OWNED BY hidden.id;
CREATE INDEX hidden_open ON hidden (id) WHERE is_open AND undone_at IS NULL;

-- What was forgotten, as keyed marks that only the package can make: what matches one and was said no later than `until`
-- is not stored again.
CREATE TABLE forgotten (
    mark    bytea       NOT NULL,
    until   timestamptz NOT NULL,
    receipt bigint      NOT NULL,
    PRIMARY KEY (mark, until)
);
CREATE INDEX forgotten_receipt ON forgotten (receipt);
CREATE INDEX forgotten_until ON forgotten (until);

-- Themes that were merged into others: what is written to the old name goes to the new one.
CREATE TABLE theme_aliases (
    old         text        PRIMARY KEY,
    new         text        NOT NULL CHECK (new <> old),
    since       timestamptz NOT NULL DEFAULT now(),
    finished_at timestamptz
);

-- How far each journal has arrived: the position behind the last record that is stored (the number of a file times 2^32,
-- and an offset in it), moved in the transaction that stores it. The rows of journals that ended stay, so that a copy of
-- their files that turns up later is not stored again.
CREATE TABLE journal_writers (
    writer     text        PRIMARY KEY,
    home_id    text        NOT NULL DEFAULT '',
    position   bigint      NOT NULL DEFAULT 0,
    updated_at timestamptz NOT NULL DEFAULT now()
);

-- Records that Postgres refuses whatever we do: kept, shown, and retried on demand.
CREATE SEQUENCE dead_letters_id_seq;
CREATE TABLE dead_letters (
    id       bigint      PRIMARY KEY DEFAULT nextval('dead_letters_id_seq'),
    writer   text        NOT NULL,
    position bigint      NOT NULL,
    payload  bytea       NOT NULL,
    reason   text        NOT NULL,
    at       timestamptz NOT NULL DEFAULT now(),
    UNIQUE (writer, position)
);
ALTER SEQUENCE dead_letters_id_seq OWNED BY dead_letters.id;

-- What recall has answered lately: ids, scores and milliseconds; the question itself only where an operator asked for it.
CREATE SEQUENCE recall_log_id_seq;
CREATE TABLE recall_log (
    agent_identity text        NOT NULL,
    id             bigint      NOT NULL DEFAULT nextval('recall_log_id_seq'),
    at             timestamptz NOT NULL,
    session_id     text        NOT NULL DEFAULT '',
    caller         text        NOT NULL CHECK (caller IN ('prefetch', 'tool')),
    kind           text        NOT NULL CHECK (kind IN ('memory', 'turn')),
    scope          text        NOT NULL,
    query          text,
    degraded       text,
    hits           jsonb       NOT NULL DEFAULT '[]'::jsonb,
    milliseconds   real        NOT NULL,
    PRIMARY KEY (agent_identity, id)
);
ALTER SEQUENCE recall_log_id_seq OWNED BY recall_log.id;
CREATE INDEX recall_log_timeline ON recall_log (agent_identity, at DESC);

-- Nothing is planned by texts and vectors, and statistics of them would only repeat what was said.
ALTER TABLE memory_entries ALTER COLUMN content SET STATISTICS 0, ALTER COLUMN metadata SET STATISTICS 0,
    ALTER COLUMN homes SET STATISTICS 0, ALTER COLUMN lexemes SET STATISTICS 0;
ALTER TABLE conversations ALTER COLUMN content SET STATISTICS 0, ALTER COLUMN before SET STATISTICS 0,
    ALTER COLUMN metadata SET STATISTICS 0, ALTER COLUMN digest SET STATISTICS 0, ALTER COLUMN lexemes SET STATISTICS 0;
ALTER TABLE memory_operations ALTER COLUMN content SET STATISTICS 0, ALTER COLUMN old_text SET STATISTICS 0,
    ALTER COLUMN previous SET STATISTICS 0, ALTER COLUMN metadata SET STATISTICS 0;
ALTER TABLE recall_log ALTER COLUMN query SET STATISTICS 0, ALTER COLUMN hits SET STATISTICS 0;
ALTER TABLE dead_letters ALTER COLUMN payload SET STATISTICS 0, ALTER COLUMN reason SET STATISTICS 0;
ALTER TABLE forgotten ALTER COLUMN mark SET STATISTICS 0;
ALTER INDEX memory_entries_content_key ALTER COLUMN 3 SET STATISTICS 0;
