-- Every home's files as last compared.
SELECT home_id, target, entries FROM memory_files WHERE entries <> '[]'::jsonb ORDER BY home_id, target;
