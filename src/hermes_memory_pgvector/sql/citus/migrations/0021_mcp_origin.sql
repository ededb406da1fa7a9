-- As migrations/0021 says; Citus takes one change of a distributed table at a time.
ALTER TABLE memory_entries DROP CONSTRAINT memory_entries_origin_check;
-- Then:
ALTER TABLE memory_entries ADD CONSTRAINT memory_entries_origin_check
    CHECK (origin IN ('memory_tool', 'background_review', 'file', 'operator', 'import', 'mcp')) NOT VALID;
