-- the themes that have an index of their own; null stands for the index over all themes
SELECT NULL::text FROM embedding_models AS m
WHERE m.is_current AND hermes_has_shared_index(('turn_vectors_' || m.id)::regclass)
UNION ALL
SELECT i.agent_identity FROM theme_indexes AS i JOIN embedding_models AS m ON m.id = i.model_id AND m.is_current
