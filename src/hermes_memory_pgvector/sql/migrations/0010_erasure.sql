-- Erasing: what was forgotten does not come back, and whoever asked for it has a receipt.
--
-- The key of all tombstones. It is random, made once, and stays with the rows through dumps and restores.
CREATE TABLE erasure_key (
    key        bytea   NOT NULL DEFAULT sha256(convert_to(gen_random_uuid()::text || gen_random_uuid()::text, 'UTF8')),
    is_the_one boolean PRIMARY KEY DEFAULT true CHECK (is_the_one)
);
INSERT INTO erasure_key DEFAULT VALUES;

-- What was asked to be forgotten, by whom and how much there was of it. No text: `named` says which options were given.
CREATE SEQUENCE erasure_receipts_id_seq;
CREATE TABLE erasure_receipts (
    id           bigint      PRIMARY KEY DEFAULT nextval('erasure_receipts_id_seq'),
    forgotten_at timestamptz NOT NULL,
    actor        text        NOT NULL,
    home_id      text        NOT NULL DEFAULT '',
    named        text[]      NOT NULL,
    finished_at  timestamptz,
    counts       jsonb       NOT NULL DEFAULT '{}'::jsonb,
    unreached    text[]      NOT NULL DEFAULT '{}',
    digest       text        NOT NULL DEFAULT ''
);
ALTER SEQUENCE erasure_receipts_id_seq OWNED BY erasure_receipts.id;

-- Keyed hashes of forgotten words, and of themes and sessions forgotten whole. What matches one and was said no later
-- than `forgotten_at` is not stored again.
CREATE TABLE tombstones (
    hash         bytea       NOT NULL,
    receipt_id   bigint      NOT NULL REFERENCES erasure_receipts (id) ON DELETE CASCADE,
    forgotten_at timestamptz NOT NULL,
    PRIMARY KEY (hash, receipt_id)
);
CREATE INDEX tombstones_receipt ON tombstones (receipt_id);

-- Forgotten entries that a home's file still holds, as keyed hashes, and when the file was last compared: an entry that
-- was seen gone and is there again has been written anew.
ALTER TABLE memory_files ADD COLUMN withheld bytea[] NOT NULL DEFAULT '{}';
ALTER TABLE memory_files ADD COLUMN compared_at timestamptz NOT NULL DEFAULT '-infinity';
UPDATE memory_files SET compared_at = updated_at;

-- Themes that were merged into others: what is written to the old name goes to the new one.
CREATE TABLE theme_aliases (
    old         text        PRIMARY KEY,
    new         text        NOT NULL CHECK (new <> old),
    since       timestamptz NOT NULL DEFAULT now(),
    finished_at timestamptz
);
