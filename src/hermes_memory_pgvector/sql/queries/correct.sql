-- model_ids --
-- Every model that has vector tables.
SELECT id FROM embedding_models ORDER BY id;
