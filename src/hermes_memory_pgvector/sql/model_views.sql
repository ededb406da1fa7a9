-- Text and current vector side by side, for people who query by hand. A long text has one row per piece.
--
-- Made anew by every migrate, in this schema alone: another one along the search_path may belong to another installation.
DROP VIEW IF EXISTS {schema}.memory_entries_embedded;
CREATE VIEW memory_entries_embedded AS
SELECT entry.id, entry.agent_identity, entry.target, entry.content, entry.created_at, entry.updated_at, entry.metadata,
       vector.chunk, vector.embedding
FROM memory_entries AS entry
LEFT JOIN {memory_vectors} AS vector ON vector.agent_identity = entry.agent_identity AND vector.id = entry.id;
DROP VIEW IF EXISTS {schema}.conversations_embedded;
CREATE VIEW conversations_embedded AS
SELECT turn.id, turn.session_id, turn.agent_identity, turn.role, turn.content, turn.ts, turn.metadata,
       turn.parent_session_id, vector.chunk, vector.embedding
FROM conversations AS turn
LEFT JOIN {turn_vectors} AS vector ON vector.agent_identity = turn.agent_identity AND vector.id = turn.id;
