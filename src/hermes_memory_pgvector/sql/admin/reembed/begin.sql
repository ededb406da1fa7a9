-- notes that the change to a model has begun, unless one is under way; nothing is changed by asking again
INSERT INTO reembedding (model_id) VALUES (%s) ON CONFLICT DO NOTHING
