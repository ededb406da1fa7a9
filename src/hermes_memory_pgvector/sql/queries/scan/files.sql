-- Every home's MEMORY.md and USER.md as last compared.
SELECT home_id, target, entries FROM memory_files ORDER BY home_id, target;
