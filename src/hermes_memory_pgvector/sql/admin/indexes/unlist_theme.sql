-- has searches of a theme do without its index
DELETE FROM theme_indexes WHERE agent_identity = %(theme)s AND model_id = %(model_id)s
