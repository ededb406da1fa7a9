-- How many rows of a theme (null: of all) are waiting for a vector?
SELECT count(*) FROM pending_vectors WHERE %(theme)s::text IS NULL OR agent_identity = %(theme)s::text;
