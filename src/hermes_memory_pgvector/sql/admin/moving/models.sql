-- the embedding models, each with its vector tables
SELECT id, name, dim FROM embedding_models ORDER BY id
