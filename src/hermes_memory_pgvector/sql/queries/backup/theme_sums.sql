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
