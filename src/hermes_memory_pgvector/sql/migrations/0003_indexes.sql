-- Which very large themes have an approximate index of their own, and what it is called: `hermes-pgvector index` keeps
-- this list, and the search of such a theme asks it.
CREATE TABLE theme_indexes (
    agent_identity text        NOT NULL,
    model_id       integer     NOT NULL REFERENCES embedding_models (id) ON DELETE CASCADE,
    index_name     text        NOT NULL,
    created_at     timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (agent_identity, model_id)
);
