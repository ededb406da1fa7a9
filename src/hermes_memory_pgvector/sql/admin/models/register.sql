-- registers an embedding model; its id
INSERT INTO embedding_models (name, dim, min_similarity) VALUES (%s, %s, %s) RETURNING id
