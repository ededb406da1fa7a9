-- Drops the vectors of a turn.
DELETE FROM {turn_vectors} WHERE agent_identity = %(theme)s AND id = %(id)s;
