-- Whether nobody else adds up the lines that count rows; until the transaction ends, nobody else will.
--
-- A statement of its own: the lines must be read after the lock is ours.
SELECT pg_try_advisory_xact_lock(hashtextextended('hermes-growth', 7));
