-- The vector tables of one embedding model; {dim} is its dimension.
--
-- `code` says of every number of a vector which of a few ranges it lies in, one bit per bound, so that the number of
-- differing bits of two codes tells how far their vectors are apart: the nearest rows of a theme by code are found from
-- an index alone and compared exactly afterwards. Few dimensions need more bounds to be told apart. A row belongs to the
-- text row of the same key and goes with it.

CREATE TABLE {turn_vectors} (
    agent_identity text           NOT NULL,
    id             bigint         NOT NULL,
    chunk          smallint       NOT NULL DEFAULT 0,
    ts             timestamptz    NOT NULL,
    content_hash   bigint         NOT NULL,
    embedding      halfvec({dim}) NOT NULL,
    PRIMARY KEY (agent_identity, id, chunk),
    FOREIGN KEY (agent_identity, id) REFERENCES conversations ON UPDATE CASCADE ON DELETE CASCADE
) WITH (autovacuum_vacuum_insert_scale_factor = 0.02, autovacuum_vacuum_insert_threshold = 500);

CREATE TABLE {memory_vectors} (
    agent_identity text           NOT NULL,
    id             bigint         NOT NULL,
    chunk          smallint       NOT NULL DEFAULT 0,
    ts             timestamptz    NOT NULL,
    target         text           NOT NULL,
    embedding      halfvec({dim}) NOT NULL,
    PRIMARY KEY (agent_identity, id, chunk),
    FOREIGN KEY (agent_identity, id) REFERENCES memory_entries ON UPDATE CASCADE ON DELETE CASCADE
) WITH (autovacuum_vacuum_insert_scale_factor = 0.02, autovacuum_vacuum_insert_threshold = 500);

DO $code$
DECLARE
    code text;
    name text;
BEGIN
    -- Numbers of a unit vector spread around zero by one over the root of their count.
    SELECT string_agg(format('binary_quantize(embedding - %L::halfvec)',
                             array_fill(bound / sqrt({dim}), ARRAY[{dim}])::halfvec::text), ' || ' ORDER BY bound)
    INTO code FROM unnest(hermes_code_bounds({dim})) AS bound;
    FOREACH name IN ARRAY ARRAY[$name${turn_vectors}$name$, $name${memory_vectors}$name$] LOOP
        EXECUTE format('ALTER TABLE %1$s ADD COLUMN code bit(%2$s) NOT NULL GENERATED ALWAYS AS ((%3$s)::bit(%2$s)) STORED',
                       name, cardinality(hermes_code_bounds({dim})) * {dim}, code);
        -- A vector beside its key in the page is read many times faster than one out of line, while a row fits a page.
        EXECUTE format('ALTER TABLE %s ALTER COLUMN embedding SET STORAGE %s',
                       name, CASE WHEN {dim} <= 3072 THEN 'PLAIN' ELSE 'EXTERNAL' END);
        -- Statistics are over all rows, and estimates tell of them whoever asks.
        EXECUTE format('ALTER TABLE %s ALTER COLUMN embedding SET STATISTICS 0, ALTER COLUMN code SET STATISTICS 0', name);
    END LOOP;
    ALTER TABLE {turn_vectors} ALTER COLUMN content_hash SET STATISTICS 0;
END
$code$;

-- All that is read of a row to tell whether it may be near. The key is the theme alone: rows then lie as they came, a
-- page of one theme that is full is left full, and a theme that grows beside a hundred others takes as few pages as one
-- that came at once.
CREATE INDEX {turn_codes} ON {turn_vectors} (agent_identity) INCLUDE (id, ts, code) WITH (fillfactor = 100);
CREATE INDEX {memory_codes} ON {memory_vectors} (agent_identity) INCLUDE (id, ts, target, code) WITH (fillfactor = 100);
