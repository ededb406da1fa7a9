-- The key of the tombstones.
SELECT key FROM erasure_key;
