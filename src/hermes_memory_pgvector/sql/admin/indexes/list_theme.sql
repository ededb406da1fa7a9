-- has searches of a theme use its index
INSERT INTO theme_indexes (agent_identity, model_id, index_name) VALUES (%(theme)s, %(model_id)s, %(name)s)
ON CONFLICT (agent_identity, model_id) DO UPDATE SET index_name = excluded.index_name
