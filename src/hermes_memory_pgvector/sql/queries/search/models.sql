-- The embedding models whose vectors the database holds: the current one first, then the others, the newest first.
SELECT id, name, dim, min_similarity, candidates, 'halfvec'::regtype::oid::bigint AS vector_oid, is_current
FROM embedding_models ORDER BY NOT is_current, id DESC;
