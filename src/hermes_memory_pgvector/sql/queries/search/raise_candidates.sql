-- Raises the number of rows compared exactly for a model whose bits select too roughly.
UPDATE embedding_models SET candidates = least(25600, greatest(candidates, %(candidates)s::integer))
WHERE id = %(id)s::integer;
