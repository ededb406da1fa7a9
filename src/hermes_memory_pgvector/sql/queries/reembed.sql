-- finish_pending --
-- Takes rows off the queue for vectors that have one of this model.
DELETE FROM pending_vectors AS pending
WHERE (pending.kind = 'turn' AND EXISTS (SELECT FROM {turn_vectors} AS made
                                         WHERE made.agent_identity = pending.agent_identity AND made.id = pending.id))
   OR (pending.kind = 'memory' AND EXISTS (SELECT FROM {memory_vectors} AS made
                                           WHERE made.agent_identity = pending.agent_identity AND made.id = pending.id));


-- is_at_work --
-- Does somebody hold the lock of those who change the model?
SELECT EXISTS (SELECT FROM pg_locks AS held
               WHERE held.locktype = 'advisory' AND held.objsubid = 1
                 AND held.database = (SELECT own.oid FROM pg_database AS own WHERE own.datname = current_database())
                 AND (held.classid::bigint << 32 | held.objid::bigint)
                     = hashtextextended('hermes-reembed ' || current_schema(), 7));


-- models --
-- All embedding models of the database, the current one first, and how much room their vectors take.
SELECT id, name, dim, is_current, created_at,
       coalesce(pg_total_relation_size(to_regclass('turn_vectors_' || id)), 0)
     + coalesce(pg_total_relation_size(to_regclass('memory_vectors_' || id)), 0) AS bytes
FROM embedding_models ORDER BY NOT is_current, id DESC;
