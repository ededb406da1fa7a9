-- Whether nobody else adds up processes that are gone, until the end of this transaction.
SELECT pg_try_advisory_xact_lock(hashtextextended('hermes past processes', 20));
