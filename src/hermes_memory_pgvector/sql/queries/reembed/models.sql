-- All embedding models of the database, the current one first, and how much room their vectors take.
SELECT id, name, dim, is_current, created_at,
       coalesce(pg_total_relation_size(to_regclass('turn_vectors_' || id)), 0)
     + coalesce(pg_total_relation_size(to_regclass('memory_vectors_' || id)), 0) AS bytes
FROM embedding_models ORDER BY NOT is_current, id DESC;
