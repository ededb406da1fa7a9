-- What makes a search over all themes fast when a model has more than some 150,000 vectors; admin only, never needed.
--
-- It slows inserts down, so it is worth having only where scope 'all' is used.
CREATE INDEX ON {turn_vectors} USING hnsw (code bit_hamming_ops) WITH (m = 24, ef_construction = 128)
    WHERE NOT hermes_is_private(agent_identity);
CREATE INDEX ON {memory_vectors} USING hnsw (code bit_hamming_ops) WITH (m = 24, ef_construction = 128)
    WHERE NOT hermes_is_private(agent_identity);
