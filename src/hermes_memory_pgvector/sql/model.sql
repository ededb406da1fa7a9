-- The vector tables of one embedding model; {dim} is its dimension.
--
-- Two layouts, see embedding_models.layout. "covering" carries the vector itself in the key: a theme is searched
-- exactly, from the index alone. "coded" carries one bit per dimension: the nearest by bits are found from the index
-- alone and compared exactly afterwards. A row belongs to the text row of the same key and goes with it.

CREATE TABLE {turn_vectors} (
    agent_identity text        NOT NULL,
    id             bigint      NOT NULL,
    chunk          smallint    NOT NULL DEFAULT 0,
    ts             timestamptz NOT NULL,
    twin           bigint      NOT NULL,
    embedding      halfvec({dim}) NOT NULL,
    code           bit({dim})  NOT NULL,
    FOREIGN KEY (agent_identity, id) REFERENCES conversations ON UPDATE CASCADE ON DELETE CASCADE
) WITH (autovacuum_vacuum_insert_scale_factor = 0.02, autovacuum_vacuum_insert_threshold = 500);

CREATE TABLE {memory_vectors} (
    agent_identity text        NOT NULL,
    id             bigint      NOT NULL,
    chunk          smallint    NOT NULL DEFAULT 0,
    ts             timestamptz NOT NULL,
    target         text        NOT NULL,
    embedding      halfvec({dim}) NOT NULL,
    code           bit({dim})  NOT NULL,
    FOREIGN KEY (agent_identity, id) REFERENCES memory_entries ON UPDATE CASCADE ON DELETE CASCADE
) WITH (autovacuum_vacuum_insert_scale_factor = 0.02, autovacuum_vacuum_insert_threshold = 500);

DO $layout$
BEGIN
    IF {dim} <= 384 THEN
        ALTER TABLE {turn_vectors} ADD PRIMARY KEY (agent_identity, id, chunk) INCLUDE (ts, twin, embedding);
        ALTER TABLE {memory_vectors} ADD PRIMARY KEY (agent_identity, id, chunk) INCLUDE (ts, target, embedding);
    ELSE
        ALTER TABLE {turn_vectors} ADD PRIMARY KEY (agent_identity, id, chunk) INCLUDE (ts, twin, code);
        ALTER TABLE {memory_vectors} ADD PRIMARY KEY (agent_identity, id, chunk) INCLUDE (ts, target, code);
    END IF;
    -- A vector beside its key in the page is read many times faster than one out of line, while a row fits a page.
    IF {dim} <= 3072 THEN
        ALTER TABLE {turn_vectors} ALTER COLUMN embedding SET STORAGE PLAIN;
        ALTER TABLE {memory_vectors} ALTER COLUMN embedding SET STORAGE PLAIN;
    ELSE
        ALTER TABLE {turn_vectors} ALTER COLUMN embedding SET STORAGE EXTERNAL;
        ALTER TABLE {memory_vectors} ALTER COLUMN embedding SET STORAGE EXTERNAL;
    END IF;
END
$layout$;
