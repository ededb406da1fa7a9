-- Whether nobody else is storing records that have waited for a theme; until the transaction ends, nobody else will.
SELECT pg_try_advisory_xact_lock(hashtextextended('hermes-waiting', 7));
