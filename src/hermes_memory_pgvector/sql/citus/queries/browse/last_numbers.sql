-- The highest number of a line that counts rows, of a turn in those themes, and of an operation on memories.
SELECT coalesce((SELECT max(id) FROM theme_growth), 0), coalesce((SELECT max(id) FROM memory_operations), 0),
       coalesce((SELECT max(id) FROM conversations), 0);
