-- How many vectors of this model a memory has: one for each piece of its text.
SELECT count(*) FROM {memory_vectors} WHERE agent_identity = %(theme)s AND id = %(id)s;
