-- finish_made --
-- Takes those of these rows off the queue for vectors that have one of this model by now.
--
-- Arrays of equal length: themes, kinds, ids.
DELETE FROM pending_vectors AS pending
USING unnest(%(themes)s::text[], %(kinds)s::text[], %(ids)s::bigint[]) AS done (theme, kind, id)
WHERE pending.agent_identity = done.theme AND pending.kind = done.kind AND pending.id = done.id
  AND (EXISTS (SELECT FROM {turn_vectors} AS made
               WHERE done.kind = 'turn' AND made.agent_identity = done.theme AND made.id = done.id)
       OR EXISTS (SELECT FROM {memory_vectors} AS made
                  WHERE done.kind = 'memory' AND made.agent_identity = done.theme AND made.id = done.id));


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
