-- The embedding model of a name and dimension.
SELECT id, name, dim, min_similarity, candidates, 'halfvec'::regtype::oid::bigint AS vector_oid
FROM embedding_models WHERE name = %(name)s::text AND dim = %(dim)s::integer;
