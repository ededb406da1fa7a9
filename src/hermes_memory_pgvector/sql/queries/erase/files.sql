-- Every home's files as last compared.
SELECT home_id, target, entries, withheld FROM memory_files ORDER BY home_id, target FOR UPDATE;
