-- How near a memory is to a question by meaning: the nearest of its pieces; null without a vector.
SELECT max(1 - cosine_distance(embedding, l2_normalize(%(vector)s::halfvec))) FROM {memory_vectors}
WHERE agent_identity = %(theme)s AND id = %(id)s;
