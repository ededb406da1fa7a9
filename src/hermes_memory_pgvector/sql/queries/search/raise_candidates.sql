-- Raises the number of rows compared exactly for a model whose bits select too roughly.
SELECT hermes_raise_candidates(%(id)s::integer, %(candidates)s::integer);
