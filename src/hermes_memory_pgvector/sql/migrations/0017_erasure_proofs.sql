-- Erasing: what is found out late is refused, too, and whoever was interrupted can go on.
--
-- A text that was forgotten wherever it is a part of others is known by its length and a keyed hash.
ALTER TABLE tombstones ADD COLUMN part_length integer;
-- The same words may be forgotten until several times: a row whose clock was ahead takes its own along.
ALTER TABLE tombstones DROP CONSTRAINT tombstones_pkey, ADD PRIMARY KEY (hash, receipt_id, forgotten_at);
CREATE INDEX tombstones_parts ON tombstones (forgotten_at) WHERE part_length IS NOT NULL;
CREATE INDEX tombstones_until ON tombstones (forgotten_at);

-- What was asked for, as a keyed hash, so that the same request goes on where it was interrupted; and the next number of
-- each table when it was made: rows below it were there, whatever their clocks said.
ALTER TABLE erasure_receipts ADD COLUMN request bytea;
ALTER TABLE erasure_receipts ADD COLUMN horizon bigint[] NOT NULL DEFAULT '{}';

-- Which version of this schema the process that delivers a journal knows; 0 for those that are older than this column, and
-- do not ask whether something was forgotten.
ALTER TABLE journal_writers ADD COLUMN schema_version integer NOT NULL DEFAULT 0;

-- Searches for texts are made by hermes_find_texts.
DROP FUNCTION IF EXISTS hermes_count_texts(text[]);
