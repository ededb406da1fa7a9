-- The key of the tombstones, if there are any.
SELECT one.key FROM erasure_key AS one WHERE EXISTS (SELECT FROM tombstones);
