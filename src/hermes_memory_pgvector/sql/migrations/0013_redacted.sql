-- Rows in which secrets were masked are few, and counted for the operator.
CREATE INDEX conversations_redacted ON conversations (agent_identity) WHERE metadata ? 'redacted';
CREATE INDEX memory_entries_redacted ON memory_entries (agent_identity) WHERE metadata ? 'redacted';
