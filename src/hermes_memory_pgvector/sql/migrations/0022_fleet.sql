-- Who works with this memory: the processes that live, what those that are gone have counted, and the agents they work for.
--
-- Every process tells now and then that it lives, how it is doing, and what it has counted so far. Numbers, names of
-- machines and folders, sentences about what does not work; never a theme and never a text.
CREATE TABLE agent_processes (
    id          text        PRIMARY KEY,
    login       text        NOT NULL DEFAULT session_user,
    home_id     text        NOT NULL,
    host        text        NOT NULL,
    home        text        NOT NULL,
    pid         integer     NOT NULL,
    command     text        NOT NULL,
    kind        text        NOT NULL,
    version     text        NOT NULL,
    started_at  timestamptz NOT NULL,
    seen_at     timestamptz NOT NULL,
    -- Whoever lives is heard of again by then.
    expected_at timestamptz NOT NULL,
    ended_at    timestamptz,
    state       jsonb       NOT NULL,
    counters    jsonb       NOT NULL
);
CREATE INDEX agent_processes_seen ON agent_processes (seen_at);

-- What processes have counted whose rows are gone, so that sums only grow.
CREATE TABLE past_processes (
    home_id   text        NOT NULL,
    login     text        NOT NULL DEFAULT session_user,
    processes bigint      NOT NULL,
    last_seen timestamptz NOT NULL,
    counters  jsonb       NOT NULL,
    PRIMARY KEY (home_id, login)
);

-- The agents: a theme, as a home works for it. Host, kind and version are those of the last time.
CREATE TABLE agents (
    agent_identity text        NOT NULL,
    home_id        text        NOT NULL,
    first_seen     timestamptz NOT NULL DEFAULT now(),
    last_seen      timestamptz NOT NULL DEFAULT now(),
    host           text        NOT NULL,
    kind           text        NOT NULL,
    version        text        NOT NULL,
    sessions       bigint      NOT NULL DEFAULT 0,
    turns          bigint      NOT NULL DEFAULT 0,
    memories       bigint      NOT NULL DEFAULT 0,
    recalls        bigint      NOT NULL DEFAULT 0,
    PRIMARY KEY (agent_identity, home_id)
);
