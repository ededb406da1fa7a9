-- Sets, for this transaction, how many rows an index over all themes looks at.
SELECT set_config('hnsw.ef_search', %(breadth)s::text, true), set_config('hnsw.iterative_scan', 'relaxed_order', true);
