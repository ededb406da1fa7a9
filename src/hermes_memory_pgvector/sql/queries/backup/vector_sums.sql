-- How many vectors of a model each theme has, and the sum of their checksums.
SELECT 'turn_vectors', row_of.agent_identity, count(*),
       sum(hashtextextended(row_of.id || ' ' || row_of.chunk || ' ' || row_of.embedding::text, 0)::numeric)::text
FROM {turn_vectors} AS row_of GROUP BY row_of.agent_identity
UNION ALL
SELECT 'memory_vectors', row_of.agent_identity, count(*),
       sum(hashtextextended(row_of.id || ' ' || row_of.chunk || ' ' || row_of.embedding::text, 0)::numeric)::text
FROM {memory_vectors} AS row_of GROUP BY row_of.agent_identity;
