-- Makes sure that a home's file has a row to be compared with.
INSERT INTO memory_files (home_id, target, entries) VALUES (%(home_id)s, %(target)s, '[]'::jsonb)
ON CONFLICT (home_id, target) DO NOTHING;
