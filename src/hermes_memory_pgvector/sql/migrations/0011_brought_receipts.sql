-- What was forgotten in another database stays forgotten when its rows are brought here: the receipt comes along with
-- the key of its tombstones. Receipts of this database have none of their own.
ALTER TABLE erasure_receipts ADD COLUMN key bytea;
CREATE INDEX erasure_receipts_key ON erasure_receipts (key) WHERE key IS NOT NULL;
