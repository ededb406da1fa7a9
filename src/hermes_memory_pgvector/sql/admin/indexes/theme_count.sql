-- how many vectors a theme has
SELECT count(*) FROM {turn_vectors} WHERE agent_identity = %s
