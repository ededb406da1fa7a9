-- How many rows have no vector of this model? Counted up to a bound.
SELECT count(*) FROM (
    SELECT 1 FROM memory_entries AS memory
    WHERE memory.muted_at IS NULL AND NOT EXISTS (SELECT FROM {memory_vectors} AS known
                      WHERE known.agent_identity = memory.agent_identity AND known.id = memory.id)
    UNION ALL
    SELECT 1 FROM conversations AS turn
    WHERE turn.muted_at IS NULL AND NOT EXISTS (SELECT FROM {turn_vectors} AS known
                      WHERE known.agent_identity = turn.agent_identity AND known.id = turn.id)
    LIMIT %(most)s::integer
) AS missing;
