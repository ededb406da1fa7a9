-- Waits for what is being written, and holds back what comes next until the transaction ends.
SELECT pg_advisory_xact_lock(hashtextextended('hermes-gate', 7));
