-- How many turns and memories are in a quarantine.
SELECT (SELECT count(DISTINCT (agent_identity, id)) FROM quarantined_turns),
       (SELECT count(DISTINCT (agent_identity, id)) FROM quarantined_memories);
