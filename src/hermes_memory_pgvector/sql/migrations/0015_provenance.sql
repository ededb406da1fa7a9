-- Where each row comes from: what put its words there, the home that wrote it, and whether strangers had a hand in it.
--
-- Rows of before have none of the three: null stands for not known, so that no row is written anew. Whose turn it is then
-- follows from its role (hermes_origin_of_turn), what wrote a memory from its metadata (hermes_origin_of_memory).
ALTER TABLE conversations
    ADD COLUMN origin  text,
    ADD COLUMN home_id text,
    ADD COLUMN trust   text,
    ADD CONSTRAINT conversations_origin_check CHECK (origin IN ('user', 'assistant', 'delegation', 'import')) NOT VALID,
    ADD CONSTRAINT conversations_trust_check CHECK (trust IN ('trusted', 'exposed', 'untrusted')) NOT VALID;
ALTER TABLE memory_entries
    ADD COLUMN origin  text,
    ADD COLUMN home_id text,
    ADD COLUMN trust   text,
    ADD CONSTRAINT memory_entries_origin_check
        CHECK (origin IN ('memory_tool', 'background_review', 'file', 'operator', 'import')) NOT VALID,
    ADD CONSTRAINT memory_entries_trust_check CHECK (trust IN ('trusted', 'exposed', 'untrusted')) NOT VALID;
ALTER TABLE delegations ADD COLUMN home_id text;
-- The entries are what the operations add up to, so these have it too; `origin` there says how a home came to hold it.
ALTER TABLE memory_operations
    ADD COLUMN written_by text,
    ADD COLUMN trust      text;

-- What is not offered unasked: the search reads these ids and leaves them out.
CREATE INDEX conversations_distrusted ON conversations (agent_identity, id) INCLUDE (trust)
    WHERE trust IN ('untrusted', 'exposed');
CREATE INDEX memory_entries_distrusted ON memory_entries (agent_identity, id) INCLUDE (trust)
    WHERE trust IN ('untrusted', 'exposed');
