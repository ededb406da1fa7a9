-- Lets the search over all themes, for this transaction, look at as many rows of its index as are compared exactly.
--
-- breadth: that number, as text, at most 1000. Without such an index only the last setting matters.
SELECT set_config('hnsw.ef_search', %(breadth)s::text, true), set_config('hnsw.iterative_scan', 'relaxed_order', true),
       set_config('jit', 'off', true);
