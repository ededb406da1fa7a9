-- Lets a writer in, unless something is being erased or renamed at this moment; which themes have other names now, and the
-- key of the tombstones if there are any.
SELECT pg_advisory_xact_lock_shared(hashtextextended('hermes-gate', 7)),
       (SELECT jsonb_object_agg(alias.old, alias.new) FROM theme_aliases AS alias),
       (SELECT one.key FROM erasure_key AS one WHERE EXISTS (SELECT FROM tombstones));
