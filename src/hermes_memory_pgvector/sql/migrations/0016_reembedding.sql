-- A change of the embedding model that is under way: the model whose vectors are being made beside those in use, and how
-- far that has come. At most one; the row goes with the switch, or when the change is cancelled.
CREATE TABLE reembedding (
    model_id   integer     NOT NULL REFERENCES embedding_models (id) ON DELETE CASCADE,
    started_at timestamptz NOT NULL DEFAULT now(),
    seen_at    timestamptz NOT NULL DEFAULT now(),
    done       bigint      NOT NULL DEFAULT 0,
    total      bigint      NOT NULL DEFAULT 0,
    rate       real        NOT NULL DEFAULT 0,
    problem    text        NOT NULL DEFAULT '',
    is_the_one boolean     PRIMARY KEY DEFAULT true CHECK (is_the_one)
);
