-- Memories that have a vector of the former model, or wait for one, and have none of the new model; in the order of their keys.
--
-- theme, id: the key after which to go on; limit. OFFSET 0 has each row looked up by its key: a join would read the new
-- model's vectors from the first one on, for every page.
SELECT agent_identity, id
FROM (
    (SELECT DISTINCT known.agent_identity, known.id FROM {former_memory_vectors} AS known
     WHERE (known.agent_identity, known.id) > (%(theme)s::text, %(id)s::bigint)
       AND NOT EXISTS (SELECT FROM {memory_vectors} AS made
                       WHERE made.agent_identity = known.agent_identity AND made.id = known.id OFFSET 0)
     ORDER BY known.agent_identity, known.id LIMIT %(limit)s::integer)
    UNION
    (SELECT pending.agent_identity, pending.id FROM pending_vectors AS pending
     WHERE pending.kind = 'memory' AND (pending.agent_identity, pending.id) > (%(theme)s::text, %(id)s::bigint)
       AND NOT EXISTS (SELECT FROM {memory_vectors} AS made
                       WHERE made.agent_identity = pending.agent_identity AND made.id = pending.id OFFSET 0)
     ORDER BY pending.agent_identity, pending.id LIMIT %(limit)s::integer)
) AS wanting
ORDER BY agent_identity, id LIMIT %(limit)s::integer;
