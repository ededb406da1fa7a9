-- How many rows those tables have that belong to no theme, or that nobody recalls, and the sum of their checksums.
SELECT 'tombstones', count(*), coalesce(sum(hashtextextended(row_of::text, 0)::numeric), 0)::text FROM tombstones AS row_of
UNION ALL
SELECT 'erasure_receipts', count(*), coalesce(sum(hashtextextended(row_of::text, 0)::numeric), 0)::text FROM erasure_receipts AS row_of
UNION ALL
SELECT 'theme_aliases', count(*), coalesce(sum(hashtextextended(row_of::text, 0)::numeric), 0)::text FROM theme_aliases AS row_of
UNION ALL
SELECT 'memory_sources', count(*), coalesce(sum(hashtextextended(row_of::text, 0)::numeric), 0)::text FROM memory_sources AS row_of
UNION ALL
SELECT 'memory_files', count(*), coalesce(sum(hashtextextended(row_of::text, 0)::numeric), 0)::text FROM memory_files AS row_of
UNION ALL
SELECT 'dead_letters', count(*), coalesce(sum(hashtextextended(row_of::text, 0)::numeric), 0)::text FROM dead_letters AS row_of
UNION ALL
SELECT 'journal_writers', count(*), coalesce(sum(hashtextextended(row_of::text, 0)::numeric), 0)::text FROM journal_writers AS row_of
UNION ALL
SELECT 'journals_ended', count(*), coalesce(sum(hashtextextended(row_of::text, 0)::numeric), 0)::text FROM journals_ended AS row_of
UNION ALL
SELECT 'audit_log', count(*), coalesce(sum(hashtextextended(row_of::text, 0)::numeric), 0)::text FROM audit_log AS row_of
UNION ALL
SELECT 'recall_log', count(*), coalesce(sum(hashtextextended(row_of::text, 0)::numeric), 0)::text FROM recall_log AS row_of;
