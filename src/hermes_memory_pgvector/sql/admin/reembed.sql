-- copy_grants --
-- gives everybody the rights on a new model's vectors that they have on the former model's
DO $$
DECLARE
    granted record;
BEGIN
    FOR granted IN
        SELECT g.grantee, g.privilege_type, CASE g.table_name WHEN {former_turn_vectors} THEN {turn_vectors} ELSE {memory_vectors} END AS name
        FROM information_schema.role_table_grants AS g
        WHERE g.table_schema = current_schema() AND g.table_name IN ({former_turn_vectors}, {former_memory_vectors})
          AND g.grantee <> current_user
    LOOP
        EXECUTE format('GRANT %s ON %I TO %s', granted.privilege_type, granted.name,
                       CASE granted.grantee WHEN 'PUBLIC' THEN 'PUBLIC' ELSE quote_ident(granted.grantee) END);
    END LOOP;
END
$$;


-- finish_pending --
-- takes rows off the queue for vectors that have one of this model
DELETE FROM pending_vectors AS pending
WHERE (pending.kind = 'turn' AND EXISTS (SELECT FROM {turn_vectors} AS made
                                         WHERE made.agent_identity = pending.agent_identity AND made.id = pending.id))
   OR (pending.kind = 'memory' AND EXISTS (SELECT FROM {memory_vectors} AS made
                                           WHERE made.agent_identity = pending.agent_identity AND made.id = pending.id))
