-- Whether nobody else is shortening the history, until the transaction ends.
SELECT pg_try_advisory_xact_lock(hashtextextended('hermes-history', 7));
