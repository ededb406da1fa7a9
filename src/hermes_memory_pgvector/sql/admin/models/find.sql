-- the id of an embedding model
SELECT id FROM embedding_models WHERE name = %s AND dim = %s
