-- The numbers of all embedding models.
SELECT id FROM embedding_models ORDER BY id;
