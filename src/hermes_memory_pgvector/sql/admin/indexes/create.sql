-- builds an approximate index over the codes of some rows while agents write; distances of codes are small whole
-- numbers, many of them equal, and with fewer edges a search loses its way among them
CREATE INDEX CONCURRENTLY {name} ON {table} USING hnsw (code bit_hamming_ops)
WITH (m = 24, ef_construction = 128) WHERE {rows}
