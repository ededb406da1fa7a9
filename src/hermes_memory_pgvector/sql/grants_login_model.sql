-- A granted login's rights on one embedding model's vector tables: {rights}.
GRANT {rights} ON {memory_vectors}, {turn_vectors} TO {role};
