-- How near are texts that have nothing to do with each other? Pairs of different origin from a random sample.
WITH share AS (
    SELECT greatest(0.01, least(100, 100.0 * 20 * %(sample)s::integer / greatest(reltuples, 1)))::real AS percent
    FROM pg_class WHERE oid = '{turn_vectors}'::regclass
), sampled AS (
    (SELECT vector.embedding, turn.agent_identity || ' ' || turn.session_id AS origin
     FROM {turn_vectors} AS vector TABLESAMPLE SYSTEM ((SELECT percent FROM share))
     JOIN conversations AS turn ON turn.agent_identity = vector.agent_identity AND turn.id = vector.id
     WHERE vector.chunk = 0 ORDER BY random() LIMIT %(sample)s::integer)
    UNION ALL
    (SELECT embedding, 'memory ' || id FROM {memory_vectors}
     WHERE chunk = 0 ORDER BY random() LIMIT %(sample)s::integer)
), chosen AS (
    SELECT embedding, origin, row_number() OVER (ORDER BY random()) AS place FROM sampled LIMIT %(sample)s::integer
), pairs AS (
    SELECT 1 - (one.embedding <=> other.embedding) AS similarity
    FROM chosen AS one JOIN chosen AS other ON one.place < other.place AND one.origin <> other.origin
)
SELECT count(*), percentile_cont(0.5) WITHIN GROUP (ORDER BY similarity),
       percentile_cont(0.95) WITHIN GROUP (ORDER BY similarity),
       percentile_cont(0.99) WITHIN GROUP (ORDER BY similarity)
FROM pairs HAVING count(*) >= 60;
