-- The runtime role's rights on one embedding model's vector tables.
GRANT SELECT, INSERT, UPDATE, DELETE ON {memory_vectors}, {turn_vectors} TO {role};
