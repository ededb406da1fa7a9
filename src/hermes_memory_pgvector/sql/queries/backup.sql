-- models --
-- Every model that has vector tables.
SELECT id FROM embedding_models ORDER BY id;


-- other_sums --
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


-- snapshot --
-- A name under which other connections see the database as this transaction does.
SELECT pg_export_snapshot();


-- theme_sums --
-- How many rows each theme has in each table, and the sum of their checksums.
SELECT 'conversations', row_of.agent_identity, count(*), sum(hashtextextended(row_of::text, 0)::numeric)::text
FROM conversations AS row_of GROUP BY row_of.agent_identity
UNION ALL
SELECT 'memory_entries', row_of.agent_identity, count(*), sum(hashtextextended(row_of::text, 0)::numeric)::text
FROM memory_entries AS row_of GROUP BY row_of.agent_identity
UNION ALL
SELECT 'memory_operations', row_of.agent_identity, count(*), sum(hashtextextended(row_of::text, 0)::numeric)::text
FROM memory_operations AS row_of GROUP BY row_of.agent_identity
UNION ALL
SELECT 'delegations', row_of.agent_identity, count(*), sum(hashtextextended(row_of::text, 0)::numeric)::text
FROM delegations AS row_of GROUP BY row_of.agent_identity;


-- vector_sums --
-- How many vectors of a model each theme has, and the sum of their checksums.
SELECT 'turn_vectors', row_of.agent_identity, count(*),
       sum(hashtextextended(row_of.id || ' ' || row_of.chunk || ' ' || row_of.embedding::text, 0)::numeric)::text
FROM {turn_vectors} AS row_of GROUP BY row_of.agent_identity
UNION ALL
SELECT 'memory_vectors', row_of.agent_identity, count(*),
       sum(hashtextextended(row_of.id || ' ' || row_of.chunk || ' ' || row_of.embedding::text, 0)::numeric)::text
FROM {memory_vectors} AS row_of GROUP BY row_of.agent_identity;
