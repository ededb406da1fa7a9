-- The change of the embedding model that is under way, and how far it has come.
SELECT model.id, model.name, model.dim, model.min_similarity, model.candidates,
       'halfvec'::regtype::oid::bigint AS vector_oid, model.is_current,
       change.started_at, change.seen_at, change.done, change.total, change.rate, change.problem,
       extract(epoch FROM clock_timestamp() - change.seen_at)::double precision AS silent_seconds
FROM reembedding AS change JOIN embedding_models AS model ON model.id = change.model_id;
