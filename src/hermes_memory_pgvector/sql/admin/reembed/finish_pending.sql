-- takes rows off the queue for vectors that have one of this model
DELETE FROM pending_vectors AS pending
WHERE (pending.kind = 'turn' AND EXISTS (SELECT FROM {turn_vectors} AS made
                                         WHERE made.agent_identity = pending.agent_identity AND made.id = pending.id))
   OR (pending.kind = 'memory' AND EXISTS (SELECT FROM {memory_vectors} AS made
                                           WHERE made.agent_identity = pending.agent_identity AND made.id = pending.id))
