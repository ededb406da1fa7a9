-- close --
-- Waits for what is being written, and holds back what comes next until the transaction ends.
SELECT pg_advisory_xact_lock(hashtextextended('hermes-gate', 7));


-- enter --
-- Lets a writer in, unless something is being erased or renamed at this moment.
--
-- A statement of its own: what is read in the same one would be from before the wait.
SELECT pg_advisory_xact_lock_shared(hashtextextended('hermes-gate', 7));


-- forgotten --
-- Which of these hashes are tombstones, and until when is what they stand for forgotten?
SELECT hash, max(forgotten_at) FROM tombstones WHERE hash = ANY (%(hashes)s::bytea[]) GROUP BY hash;


-- open --
-- Which themes have other names now; the keys of the tombstones (this database's, and those that receipts from elsewhere
-- brought along), and until when anything is forgotten, null if nothing is; and where the installation moves to, null while it is here.
SELECT (SELECT jsonb_object_agg(alias.old, alias.new) FROM theme_aliases AS alias),
       CASE WHEN forgotten.until IS NOT NULL THEN
           ARRAY(SELECT own.key FROM erasure_key AS own
                 UNION SELECT receipt.key FROM erasure_receipts AS receipt WHERE receipt.key IS NOT NULL) END,
       forgotten.until, forgotten.parts_until, (SELECT here.moved_to FROM hermes_pgvector_installation AS here)
FROM (SELECT max(forgotten_at) AS until, max(forgotten_at) FILTER (WHERE part_length IS NOT NULL) AS parts_until
      FROM tombstones) AS forgotten;


-- parts --
-- The forgotten texts that are looked for as parts of others: key, length, hash, and until when each is forgotten.
SELECT coalesce(receipt.key, own.key), part.part_length::integer, part.hash, part.forgotten_at
FROM tombstones AS part JOIN erasure_receipts AS receipt ON receipt.id = part.receipt_id, erasure_key AS own
WHERE part.part_length IS NOT NULL AND part.forgotten_at >= %(since)s::timestamptz;
