-- Sets the cosine below which hits of a model are noise.
UPDATE embedding_models SET min_similarity = %(min_similarity)s::real WHERE id = %(id)s::integer;
