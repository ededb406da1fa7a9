-- The embedding model whose vectors are searched.
SELECT id, name, dim, min_similarity, candidates, 'halfvec'::regtype::oid::bigint AS vector_oid, is_current
FROM embedding_models WHERE is_current;
