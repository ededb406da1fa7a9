-- Whether nobody else is sweeping; until the transaction ends, nobody else does.
SELECT pg_try_advisory_xact_lock(hashtextextended('hermes-sweep', 7));
