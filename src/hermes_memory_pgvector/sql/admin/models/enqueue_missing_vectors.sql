-- lists every row that has no vector of this model for embedding, except those that recall leaves out
INSERT INTO pending_vectors (agent_identity, kind, id)
SELECT agent_identity, 'memory', id FROM memory_entries AS entry
WHERE muted_at IS NULL
  AND NOT EXISTS (SELECT FROM {memory_vectors} AS v WHERE v.agent_identity = entry.agent_identity AND v.id = entry.id)
UNION ALL
SELECT agent_identity, 'turn', id FROM conversations AS turn
WHERE muted_at IS NULL
  AND NOT EXISTS (SELECT FROM {turn_vectors} AS v WHERE v.agent_identity = turn.agent_identity AND v.id = turn.id)
ON CONFLICT DO NOTHING
