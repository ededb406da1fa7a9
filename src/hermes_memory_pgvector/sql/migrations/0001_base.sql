-- Themes, memories, turns, and what makes writes arrive exactly once.
--
-- Every primary and unique key of a tenant table starts with agent_identity, so the tables can be sharded by theme.

CREATE EXTENSION IF NOT EXISTS vector;

CREATE SEQUENCE memory_entries_id_seq;
CREATE TABLE memory_entries (
    agent_identity text        NOT NULL DEFAULT 'default',
    id             bigint      NOT NULL DEFAULT nextval('memory_entries_id_seq'),
    target         text        NOT NULL CHECK (target IN ('memory', 'user')),
    content        text        NOT NULL,
    created_at     timestamptz NOT NULL DEFAULT now(),
    updated_at     timestamptz NOT NULL DEFAULT now(),
    metadata       jsonb       NOT NULL DEFAULT '{}'::jsonb,
    PRIMARY KEY (agent_identity, id)
);
ALTER SEQUENCE memory_entries_id_seq OWNED BY memory_entries.id;
CREATE UNIQUE INDEX memory_entries_content_key ON memory_entries (agent_identity, target, hermes_digest(content));
CREATE INDEX memory_entries_timeline ON memory_entries (agent_identity, target, updated_at DESC);

CREATE SEQUENCE conversations_id_seq;
CREATE TABLE conversations (
    agent_identity    text        NOT NULL DEFAULT 'default',
    id                bigint      NOT NULL DEFAULT nextval('conversations_id_seq'),
    session_id        text        NOT NULL,
    role              text        NOT NULL CHECK (role IN ('user', 'assistant', 'system', 'tool')),
    content           text        NOT NULL,
    ts                timestamptz NOT NULL DEFAULT now(),
    metadata          jsonb       NOT NULL DEFAULT '{}'::jsonb,
    parent_session_id text,
    digest            bytea,
    ordinal           integer,
    PRIMARY KEY (agent_identity, id)
);
ALTER SEQUENCE conversations_id_seq OWNED BY conversations.id;
-- A turn is the n-th saying of these words in this session: whoever reports it, it is stored once.
CREATE UNIQUE INDEX conversations_turn_key ON conversations (agent_identity, session_id, digest, ordinal);
CREATE INDEX conversations_timeline ON conversations (agent_identity, ts DESC);
CREATE INDEX conversations_session_timeline ON conversations (agent_identity, session_id, ts DESC);

-- Which homes hold an entry in their MEMORY.md or USER.md. An entry disappears when its last home drops it.
CREATE TABLE memory_sources (
    agent_identity text        NOT NULL,
    entry_id       bigint      NOT NULL,
    home_id        text        NOT NULL,
    origin         text        NOT NULL CHECK (origin IN ('tool', 'file')),
    since          timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (agent_identity, entry_id, home_id),
    FOREIGN KEY (agent_identity, entry_id) REFERENCES memory_entries (agent_identity, id) ON DELETE CASCADE
);
CREATE INDEX memory_sources_home ON memory_sources (home_id, agent_identity);

-- Every memory operation in the order of its making. The entries are the fold of this list, also when an operation
-- arrives late because its process died before it could deliver.
CREATE TABLE memory_operations (
    agent_identity text        NOT NULL,
    target         text        NOT NULL CHECK (target IN ('memory', 'user')),
    order_us       bigint      NOT NULL,
    writer         text        NOT NULL,
    seq            bigint      NOT NULL,
    part           integer     NOT NULL,
    action         text        NOT NULL CHECK (action IN ('add', 'replace', 'remove')),
    content        text        NOT NULL DEFAULT '',
    old_text       text        NOT NULL DEFAULT '',
    previous       text,
    home_id        text        NOT NULL DEFAULT '',
    origin         text        NOT NULL DEFAULT 'tool',
    at             timestamptz NOT NULL,
    metadata       jsonb       NOT NULL DEFAULT '{}'::jsonb,
    PRIMARY KEY (agent_identity, target, order_us, writer, seq, part)
);

-- MEMORY.md and USER.md of each home as last compared: the entries in file order.
CREATE TABLE memory_files (
    home_id    text        NOT NULL,
    target     text        NOT NULL CHECK (target IN ('memory', 'user')),
    entries    jsonb       NOT NULL,
    updated_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (home_id, target)
);

-- Which subagent session worked for which session.
CREATE SEQUENCE delegations_id_seq;
CREATE TABLE delegations (
    agent_identity   text        NOT NULL,
    id               bigint      NOT NULL DEFAULT nextval('delegations_id_seq'),
    session_id       text        NOT NULL,
    child_session_id text        NOT NULL,
    task_digest      bytea       NOT NULL,
    ts               timestamptz NOT NULL DEFAULT now(),
    metadata         jsonb       NOT NULL DEFAULT '{}'::jsonb,
    PRIMARY KEY (agent_identity, id)
);
ALTER SEQUENCE delegations_id_seq OWNED BY delegations.id;
CREATE UNIQUE INDEX delegations_edge ON delegations (agent_identity, session_id, child_session_id, task_digest);

-- How far each journal has arrived; advanced in the transaction that stores what it counts.
CREATE TABLE journal_writers (
    writer     text        PRIMARY KEY,
    seq        bigint      NOT NULL,
    home_id    text        NOT NULL DEFAULT '',
    updated_at timestamptz NOT NULL DEFAULT now()
);

-- Records that Postgres refuses whatever we do: kept, shown, and retried on demand.
CREATE SEQUENCE dead_letters_id_seq;
CREATE TABLE dead_letters (
    id       bigint      PRIMARY KEY DEFAULT nextval('dead_letters_id_seq'),
    writer   text        NOT NULL,
    seq      bigint      NOT NULL,
    payload  bytea       NOT NULL,
    reason   text        NOT NULL,
    at       timestamptz NOT NULL DEFAULT now(),
    UNIQUE (writer, seq)
);
ALTER SEQUENCE dead_letters_id_seq OWNED BY dead_letters.id;

-- Rows that still want a vector of the current model. Whoever embeds next takes a lease on some of them.
CREATE TABLE pending_vectors (
    agent_identity text        NOT NULL,
    kind           text        NOT NULL CHECK (kind IN ('memory', 'turn')),
    id             bigint      NOT NULL,
    due_at         timestamptz NOT NULL DEFAULT now(),
    attempts       integer     NOT NULL DEFAULT 0,
    PRIMARY KEY (agent_identity, kind, id)
);
CREATE INDEX pending_vectors_due ON pending_vectors (due_at);
