-- enqueue_memories --
-- lists every memory that has no vector of this model for embedding, except those that recall leaves out
--
-- All columns are named: a distributed engine takes no default that is computed in a statement which reads its own tables.
INSERT INTO pending_vectors (agent_identity, kind, id, due_at, attempts, reason)
SELECT agent_identity, 'memory', id, 'epoch', 0, '' FROM memory_entries AS entry
WHERE hidden_by IS NULL
  AND NOT EXISTS (SELECT FROM {memory_vectors} AS v WHERE v.agent_identity = entry.agent_identity AND v.id = entry.id)
ON CONFLICT DO NOTHING


-- enqueue_turns --
-- lists every turn that has no vector of this model for embedding, except those that recall leaves out
INSERT INTO pending_vectors (agent_identity, kind, id, due_at, attempts, reason)
SELECT agent_identity, 'turn', id, 'epoch', 0, '' FROM conversations AS turn
WHERE hidden_by IS NULL
  AND NOT EXISTS (SELECT FROM {turn_vectors} AS v WHERE v.agent_identity = turn.agent_identity AND v.id = turn.id)
ON CONFLICT DO NOTHING


-- find --
-- the id of an embedding model
SELECT id FROM embedding_models WHERE name = %s AND dim = %s


-- has_many_vectors --
-- whether a model has more vectors than this
SELECT (SELECT count(*) FROM (SELECT 1 FROM {turn_vectors} UNION ALL SELECT 1 FROM {memory_vectors} LIMIT {most} + 1) AS counted)
       > {most}


-- register --
-- registers an embedding model, under a number where it has one elsewhere; its id
INSERT INTO embedding_models (id, name, dim, unrelated_mean, unrelated_sd)
VALUES (coalesce(%s::integer, nextval('embedding_models_id_seq')), %s, %s, %s, %s) RETURNING id


-- finish_pending --
-- takes rows off the queue for vectors that have one of this model
DELETE FROM pending_vectors AS pending
WHERE (pending.kind = 'turn' AND EXISTS (SELECT FROM {turn_vectors} AS made
                                         WHERE made.agent_identity = pending.agent_identity AND made.id = pending.id))
   OR (pending.kind = 'memory' AND EXISTS (SELECT FROM {memory_vectors} AS made
                                           WHERE made.agent_identity = pending.agent_identity AND made.id = pending.id))
