-- The keys of the tombstones, if there are any: this database's, and those that receipts from elsewhere brought along.
SELECT one.key FROM erasure_key AS one WHERE EXISTS (SELECT FROM tombstones)
UNION
SELECT receipt.key FROM erasure_receipts AS receipt WHERE receipt.key IS NOT NULL;
