-- One writer at a time per theme and target, until the transaction ends.
SELECT pg_advisory_xact_lock(hashtextextended('hermes-memory:' || %(target)s || ':' || %(theme)s, 7));
