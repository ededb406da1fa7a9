-- count --
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


-- models --
-- All embedding models of the database, the current one first, and how much room their vectors take.
SELECT id, name, dim, is_current, created_at,
       coalesce(pg_total_relation_size(to_regclass('turn_vectors_' || id)), 0)
     + coalesce(pg_total_relation_size(to_regclass('memory_vectors_' || id)), 0) AS bytes
FROM embedding_models ORDER BY NOT is_current, id DESC;


-- note_progress --
-- Notes how far the change to a model has come; answers nothing when it was cancelled.
UPDATE reembedding
SET seen_at = clock_timestamp(), done = %(done)s::bigint, total = %(total)s::bigint, rate = %(rate)s::real,
    problem = %(problem)s::text
WHERE model_id = %(model_id)s::integer
RETURNING model_id;


-- state --
-- The change of the embedding model that is under way, and how far it has come.
SELECT model.id, model.name, model.dim, model.unrelated_mean, model.unrelated_sd,
       'halfvec'::regtype::oid::bigint AS vector_oid, model.is_current,
       change.started_at, change.seen_at, change.done, change.total, change.rate, change.problem,
       extract(epoch FROM clock_timestamp() - change.seen_at)::double precision AS silent_seconds
FROM reembedding AS change JOIN embedding_models AS model ON model.id = change.model_id;


-- wanting_memories --
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


-- wanting_turns --
-- Turns that have a vector of the former model, or wait for one, and have none of the new model; in the order of their keys.
--
-- theme, id: the key after which to go on; limit. OFFSET 0 has each row looked up by its key: a join would read the new
-- model's vectors from the first one on, for every page.
SELECT agent_identity, id
FROM (
    (SELECT DISTINCT known.agent_identity, known.id FROM {former_turn_vectors} AS known
     WHERE (known.agent_identity, known.id) > (%(theme)s::text, %(id)s::bigint)
       AND NOT EXISTS (SELECT FROM {turn_vectors} AS made
                       WHERE made.agent_identity = known.agent_identity AND made.id = known.id OFFSET 0)
     ORDER BY known.agent_identity, known.id LIMIT %(limit)s::integer)
    UNION
    (SELECT pending.agent_identity, pending.id FROM pending_vectors AS pending
     WHERE pending.kind = 'turn' AND (pending.agent_identity, pending.id) > (%(theme)s::text, %(id)s::bigint)
       AND NOT EXISTS (SELECT FROM {turn_vectors} AS made
                       WHERE made.agent_identity = pending.agent_identity AND made.id = pending.id OFFSET 0)
     ORDER BY pending.agent_identity, pending.id LIMIT %(limit)s::integer)
) AS wanting
ORDER BY agent_identity, id LIMIT %(limit)s::integer;
