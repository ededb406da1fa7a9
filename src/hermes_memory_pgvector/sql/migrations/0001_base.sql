-- Themes, memories, turns, and what makes writes arrive exactly once.
--
-- Every primary and unique key of a tenant table starts with agent_identity, so the tables can be sharded by theme.

CREATE EXTENSION IF NOT EXISTS vector;

-- The identity of a text at any length; sha256 also works where md5 is forbidden by policy.
CREATE FUNCTION hermes_digest(content text) RETURNS bytea
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
    AS $$ SELECT pg_catalog.sha256(pg_catalog.convert_to(content, 'UTF8')) $$;

-- The identity of words said by a role: 16 bytes are plenty within one session.
CREATE FUNCTION hermes_turn_digest(role text, content text) RETURNS bytea
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
    AS $$ SELECT pg_catalog.substr(pg_catalog.sha256(pg_catalog.convert_to(role || ':' || content, 'UTF8')), 1, 16) $$;

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
