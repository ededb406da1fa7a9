-- Waits for announcements of this home that are being stored, and holds new ones back until the transaction ends.
SELECT pg_advisory_xact_lock(hashtextextended('hermes-home:' || %(home_id)s, 7));
