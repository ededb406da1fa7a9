-- Drops the vectors of an entry whose content has changed.
DELETE FROM {memory_vectors} WHERE agent_identity = %(theme)s AND id = %(id)s;
