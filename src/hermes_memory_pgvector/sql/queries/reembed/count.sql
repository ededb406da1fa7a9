-- How many rows have a vector of the new model, and how many others have one of the former model or wait for one?
SELECT (SELECT count(*) FROM (SELECT DISTINCT agent_identity, id FROM {turn_vectors}) AS turns)
     + (SELECT count(*) FROM (SELECT DISTINCT agent_identity, id FROM {memory_vectors}) AS memories),
       (SELECT count(*) FROM (
            SELECT known.agent_identity, known.id FROM {former_turn_vectors} AS known
            WHERE NOT EXISTS (SELECT FROM {turn_vectors} AS made
                              WHERE made.agent_identity = known.agent_identity AND made.id = known.id)
            UNION
            SELECT pending.agent_identity, pending.id FROM pending_vectors AS pending
            WHERE pending.kind = 'turn'
              AND NOT EXISTS (SELECT FROM {turn_vectors} AS made
                              WHERE made.agent_identity = pending.agent_identity AND made.id = pending.id)) AS turns)
     + (SELECT count(*) FROM (
            SELECT known.agent_identity, known.id FROM {former_memory_vectors} AS known
            WHERE NOT EXISTS (SELECT FROM {memory_vectors} AS made
                              WHERE made.agent_identity = known.agent_identity AND made.id = known.id)
            UNION
            SELECT pending.agent_identity, pending.id FROM pending_vectors AS pending
            WHERE pending.kind = 'memory'
              AND NOT EXISTS (SELECT FROM {memory_vectors} AS made
                              WHERE made.agent_identity = pending.agent_identity AND made.id = pending.id)) AS memories);
