-- Which sessions go on from which: found from either end. delegations_edge finds the subagents of a session.
CREATE INDEX conversations_lineage ON conversations (agent_identity, parent_session_id, session_id)
    WHERE parent_session_id IS NOT NULL;
CREATE INDEX delegations_child ON delegations (agent_identity, child_session_id);
