-- How many vectors of this model a turn has: one for each piece of its text.
SELECT count(*) FROM {turn_vectors} WHERE agent_identity = %(theme)s AND id = %(id)s;
