-- Every tombstone with the place of its receipt, in a fixed order.
SELECT receipt.place, stone.hash, stone.forgotten_at, stone.part_length
FROM (SELECT id, row_number() OVER (ORDER BY forgotten_at, id) AS place FROM erasure_receipts) AS receipt
JOIN tombstones AS stone ON stone.receipt_id = receipt.id
ORDER BY receipt.place, stone.forgotten_at, stone.hash;
