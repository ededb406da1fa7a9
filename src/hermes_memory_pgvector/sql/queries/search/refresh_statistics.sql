-- Brings the word statistics up to date with what ANALYZE knows, unless another process is at it.
SELECT hermes_refresh_statistics() WHERE pg_try_advisory_xact_lock(hashtextextended('hermes-statistics', 7));
