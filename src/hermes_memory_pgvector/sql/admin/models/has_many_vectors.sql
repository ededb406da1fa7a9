-- whether a model has more vectors than this, or a change of the model is under way
SELECT (SELECT count(*) FROM (SELECT 1 FROM {turn_vectors} UNION ALL SELECT 1 FROM {memory_vectors} LIMIT %(most)s + 1) AS counted)
       > %(most)s OR EXISTS (SELECT 1 FROM reembedding)
