-- One theme is moved at a time, until the transaction ends.
SELECT pg_advisory_xact_lock(hashtextextended('hermes-remap', 7));
