-- similarity_of_memory --
-- How near a memory is to a question by meaning: the nearest of its pieces; null without a vector.
SELECT max(1 - cosine_distance(embedding, %(vector)s::halfvec)) FROM {memory_vectors}
WHERE agent_identity = %(theme)s AND id = %(id)s;


-- similarity_of_turn --
-- How near a turn is to a question by meaning: the nearest of its pieces; null without a vector.
SELECT max(1 - cosine_distance(embedding, %(vector)s::halfvec)) FROM {turn_vectors}
WHERE agent_identity = %(theme)s AND id = %(id)s;
