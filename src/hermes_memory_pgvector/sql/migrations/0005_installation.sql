-- Which installation this is. The id is random and made once; it stays with the rows, through dumps and restores, so
-- that a home's journal can tell the database it belongs to from any other.
CREATE TABLE hermes_pgvector_installation (
    id         uuid        NOT NULL DEFAULT gen_random_uuid(),
    made_at    timestamptz NOT NULL DEFAULT now(),
    is_the_one boolean     PRIMARY KEY DEFAULT true CHECK (is_the_one)
);
INSERT INTO hermes_pgvector_installation DEFAULT VALUES;
