-- Notes which forgotten entries a home's file still holds; a file that was never compared here is compared anew.
INSERT INTO memory_files AS known (home_id, target, entries, withheld)
VALUES (%(home_id)s, %(target)s, '[]'::jsonb, %(hashes)s::bytea[])
ON CONFLICT (home_id, target) DO UPDATE
SET withheld = ARRAY(SELECT unnest(known.withheld) UNION SELECT unnest(excluded.withheld));
