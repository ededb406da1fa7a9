-- The last state of every home's MEMORY.md and USER.md; what is no list of texts was not written by a home.
SELECT home_id, target, entries FROM memory_files
WHERE jsonb_typeof(entries) = 'array' AND NOT jsonb_path_exists(entries, '$[*] ? (@.type() != "string")')
ORDER BY home_id, target;
