-- As migrations/0024 says; Citus takes one index at a time.
CREATE INDEX conversations_lineage ON conversations (agent_identity, parent_session_id, session_id)
    WHERE parent_session_id IS NOT NULL;
-- Then:
CREATE INDEX delegations_child ON delegations (agent_identity, child_session_id);
