-- Does this database have tables of memories and turns, whoever made them?
SELECT to_regclass('memory_entries') IS NOT NULL AND to_regclass('conversations') IS NOT NULL;
