-- which migrations have been applied, and with what text
CREATE TABLE IF NOT EXISTS hermes_pgvector_migrations (
    version    integer     PRIMARY KEY,
    name       text        NOT NULL,
    sha256     text        NOT NULL,
    applied_at timestamptz NOT NULL DEFAULT now()
);
