-- Takes these rows off the queue for vectors, unless they were put into it or leased again since, or the current model is
-- another one by now: they want a vector of that.
--
-- leases: when the lease that a row was claimed with ends. model_id: the model that the vectors are of.
DELETE FROM pending_vectors AS pending
USING unnest(%(themes)b::text[], %(kinds)b::text[], %(ids)b::bigint[], %(leases)s::timestamptz[])
          AS done (theme, kind, id, lease)
WHERE pending.agent_identity = done.theme AND pending.kind = done.kind AND pending.id = done.id
  AND pending.due_at = done.lease
  AND EXISTS (SELECT FROM embedding_models AS model WHERE model.id = %(model_id)s::integer AND model.is_current);
