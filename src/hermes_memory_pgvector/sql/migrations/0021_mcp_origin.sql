-- Memories that other agents write through `hermes-pgvector mcp` have an origin of their own.
--
-- Rows are only added with it, so those that are there need no check.
ALTER TABLE memory_entries
    DROP CONSTRAINT memory_entries_origin_check,
    ADD CONSTRAINT memory_entries_origin_check
        CHECK (origin IN ('memory_tool', 'background_review', 'file', 'operator', 'import', 'mcp')) NOT VALID;
