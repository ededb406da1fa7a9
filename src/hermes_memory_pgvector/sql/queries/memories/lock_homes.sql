-- Holds these homes' mirrors back until the transaction ends: announcements of one home may go on side by side.
SELECT pg_advisory_xact_lock_shared(hashtextextended('hermes-home:' || home.id, 7))
FROM unnest(%(home_ids)s::text[]) AS home (id);
