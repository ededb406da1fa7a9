-- The forgotten texts that are looked for as parts of others: key, length, hash, and until when each is forgotten.
--
-- Runs with the owner's rights, so whoever calls it must not be able to choose what it means: the search_path has Postgres's
-- own catalog alone, and everything of ours is named with its schema.
CREATE OR REPLACE FUNCTION hermes_forgotten_parts(since timestamptz)
    RETURNS TABLE (key bytea, part_length integer, hash bytea, until timestamptz)
    LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    AS $$
    SELECT coalesce(receipt.key, own.key), part.part_length::integer, part.hash, part.forgotten_at
    FROM {schema}.tombstones AS part JOIN {schema}.erasure_receipts AS receipt ON receipt.id = part.receipt_id,
         {schema}.erasure_key AS own
    WHERE part.part_length IS NOT NULL AND part.forgotten_at >= since
    $$;
