-- Lets a writer in, unless something is being erased or renamed at this moment.
--
-- A statement of its own: what is read in the same one would be from before the wait.
SELECT pg_advisory_xact_lock_shared(hashtextextended('hermes-gate', 7));
