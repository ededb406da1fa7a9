-- how many vectors each theme has
SELECT agent_identity, count(*) FROM {turn_vectors} GROUP BY agent_identity
