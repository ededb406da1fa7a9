-- The vector tables of one embedding model; {dim} is its dimension.
--
-- {cover} puts the vector into the key while it fits an index page: the vectors of a theme then lie together, and the rows
-- nearest to a question are found by comparing them all, from that one index. A row belongs to the text row of the same key
-- and goes with it.
--
-- Made beside the tables of the whole installation and then moved into a bucket, {schema}: what a table of a distributed
-- schema may be altered in is less than what a new one has.

CREATE TABLE {turn_vectors} (
    agent_identity text           NOT NULL,
    id             bigint         NOT NULL,
    chunk          smallint       NOT NULL DEFAULT 0,
    ts             timestamptz    NOT NULL,
    content_hash   bigint         NOT NULL,
    embedding      halfvec({dim}) NOT NULL,
    PRIMARY KEY (agent_identity, id, chunk) INCLUDE (ts, content_hash{cover})
) WITH (autovacuum_vacuum_insert_scale_factor = 0.02, autovacuum_vacuum_insert_threshold = 500);

CREATE TABLE {memory_vectors} (
    agent_identity text           NOT NULL,
    id             bigint         NOT NULL,
    chunk          smallint       NOT NULL DEFAULT 0,
    ts             timestamptz    NOT NULL,
    target         text           NOT NULL,
    embedding      halfvec({dim}) NOT NULL,
    PRIMARY KEY (agent_identity, id, chunk) INCLUDE (ts, target{cover})
) WITH (autovacuum_vacuum_insert_scale_factor = 0.02, autovacuum_vacuum_insert_threshold = 500);

-- A vector beside its key in the page is read many times faster than one out of line. Statistics of vectors plan nothing.
ALTER TABLE {turn_vectors} ALTER COLUMN embedding SET STORAGE {storage}, ALTER COLUMN embedding SET STATISTICS 0,
    ALTER COLUMN content_hash SET STATISTICS 0;
ALTER TABLE {memory_vectors} ALTER COLUMN embedding SET STORAGE {storage}, ALTER COLUMN embedding SET STATISTICS 0;

ALTER TABLE {turn_vectors} SET SCHEMA {schema};
ALTER TABLE {memory_vectors} SET SCHEMA {schema};
ALTER TABLE {schema}.{turn_vectors} ADD FOREIGN KEY (agent_identity, id) REFERENCES {schema}.conversations
    ON UPDATE CASCADE ON DELETE CASCADE;
ALTER TABLE {schema}.{memory_vectors} ADD FOREIGN KEY (agent_identity, id) REFERENCES {schema}.memory_entries
    ON UPDATE CASCADE ON DELETE CASCADE;
