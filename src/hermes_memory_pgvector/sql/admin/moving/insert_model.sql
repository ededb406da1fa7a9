-- registers an embedding model under a given number; the rest of its row is copied later
INSERT INTO embedding_models (id, name, dim) OVERRIDING SYSTEM VALUE VALUES (%(id)s, %(name)s, %(dim)s)
